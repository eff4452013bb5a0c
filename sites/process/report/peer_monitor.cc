#include <sotto/sites/process/report/peer_monitor.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/elapsed.h>
#include <sotto/trainers/settings/agreed_settings.h>

namespace sotto {

using sites::PeerState;
using sites::SitePeer;

namespace {

using Level = SiteEvent::Level;

/// SitePeerReport::key_until, of a peer with this line that proved this key.
std::optional<std::int64_t> end_of_key(const TrustedPeer* line, std::string_view proved) {
  const auto keys = line == nullptr ? std::vector<PeerKey>() : line->keys();
  std::optional<std::int64_t> last;
  for (const PeerKey& one : keys) {
    if (one.key.text() == proved) {
      return one.until;
    }
    if (!one.until) {
      return {};
    }
    last = std::max(last, one.until);
  }
  return last;
}

}  // namespace

PeerMonitor::PeerMonitor(const sites::Site& site, const Channels& channels, const SiteLinks& links,
                         bool observer, std::string settings, SiteTeller teller)
    : site_(site),
      channels_(channels),
      links_(links),
      observer_(observer),
      settings_(std::move(settings)),
      teller_(teller),
      admission_(channels, std::move(teller)) {
  follow_list();
}

void PeerMonitor::follow_list() {
  if (links_.list_version() == list_version_) {
    return;
  }
  list_version_ = links_.list_version();
  admission_.follow(links_.lines());
  const auto peers = site_.peers();
  std::erase_if(seen_, [&](const auto& one) {
    return std::ranges::find(peers, one.first, &PeerState::name) == peers.end();
  });
  for (const PeerState& peer : peers) {
    // What was told of a peer that had left the list is not told again when it returns.
    const auto [seen, fresh] = seen_.try_emplace(peer.name);
    if (fresh) {
      seen->second.offences = peer.offences;
    }
  }
  if (std::ranges::none_of(links_.lines(), [this](const TrustedPeer& line) {
        return line.rank != links_.self() && (line.may_send || line.send_to);
      })) {
    teller_.warn(
        SiteEvent::Kind::trusts_nobody,
        "the list of peers allows nobody to send, and nobody is sent to: the site trains alone");
  }
  name_send_only();
}

void PeerMonitor::name_send_only() const {
  std::vector<std::string> names;
  for (const TrustedPeer& line : links_.lines()) {
    if (line.rank != links_.self() && line.send_to && !line.may_send && !observer_) {
      names.push_back(line.name);
    }
  }
  if (!names.empty()) {
    teller_.tell(
        Level::info, SiteEvent::Kind::send_only,
        fmt::format("sends to {} and lets none of them send: unless they are observers, or lead "
                    "back here by way of others, each takes weight from this site",
                    fmt::join(names, ", ")));
  }
}

void PeerMonitor::look() {
  follow_list();
  const std::vector<PeerState> peers = site_.peers();
  for (std::size_t place = 0; place < peers.size(); ++place) {
    look_at(peers[place], links_.link(place), seen_[peers[place].name]);
  }
  if (look_due_.expired()) {
    look_due_ = Deadline::after(kLookEvery);
    look_at_channels();
    admission_.look();
  }
}

/// A peer that is not waited for may fall behind without end; it is told by how many rounds it
/// does.
void PeerMonitor::count_rounds(const PeerState& peer, Seen& seen) const {
  const Round own = site_.round() - std::min(seen.counted_from.first, site_.round());
  if (!peer.heard || !seen.met || peer.joining) {
    seen.counted_from = {site_.round(), peer.round};
    seen.slow = false;
  } else if (own >= sites::kLongWhile) {
    const Round done = peer.round - std::min(seen.counted_from.second, peer.round);
    seen.slow = 2 * done < own;
    seen.counted_from = {site_.round(), peer.round};
  }
}

void PeerMonitor::look_at(const PeerState& peer, const PeerLink& link, Seen& seen) const {
  count_rounds(peer, seen);
  if (peer.round != seen.round || (peer.up && !seen.advanced)) {
    seen.round = peer.round;
    seen.advanced = Deadline::Clock::now();
  }
  if (peer.offences > seen.offences) {
    seen.offences = peer.offences;
    teller_.warn(SiteEvent::Kind::peer_offence, fmt::format("it broke a rule: {}", peer.trouble),
                 peer.name);
  }
  const PeerStanding standing = standing_of(peer, link, {});
  if (peer.up && !seen.met && !link.restless) {
    seen.trouble.clear();
    teller_.tell(Level::info, SiteEvent::Kind::peer_up,
                 fmt::format("in touch{}; it has come to round {}{}{}", way_of(link.rank),
                             peer.round, standing.text.empty() ? "" : "; ", standing.text),
                 peer.name, {{"peer_round", peer.round}});
  }
  seen.met = peer.up && !link.restless;
  look_at_habit(standing, peer.name, seen);
  if (standing.phase == PeerPhase::refused && !standing.text.empty() &&
      standing.text != seen.trouble) {
    seen.trouble = standing.text;
    teller_.warn(SiteEvent::Kind::peer_refused, standing.text, peer.name);
  }
}

void PeerMonitor::look_at_habit(const PeerStanding& standing, const std::string& name,
                                Seen& seen) const {
  const bool up = standing.phase == PeerPhase::up && standing.concern != PeerConcern::one_sided;
  if (!up || standing.concern == seen.habit) {
    return;
  }
  const auto kind = event_of(standing.concern);
  if (!kind || standing.text.empty()) {
    seen.habit = standing.concern;
  } else if (seen.told.tell(standing.concern,
                            Deadline::Clock::now())) {  // or once the pause is over
    seen.habit = standing.concern;
    teller_.tell(*kind == SiteEvent::Kind::peer_late ? Level::info : Level::warning, *kind,
                 standing.text, name);
  }
}

/// Looks for peers whose channel does not open, and for keys that two peers use.
void PeerMonitor::look_at_channels() {
  const std::vector<PeerState> peers = site_.peers();
  for (const ChannelTraffic& channel : channels_.traffic()) {
    const auto place = links_.place_of(channel.peer);
    if (!place) {
      continue;
    }
    const PeerState& peer = peers[*place];
    const PeerLink& link = links_.link(*place);
    Seen& seen = seen_[peer.name];
    if (channel.contested && !seen.contested) {
      teller_.warn(SiteEvent::Kind::peer_contested,
                   "two processes have its key: one is in touch, and another one connects",
                   peer.name);
    }
    seen.contested = channel.contested;
    if (link.open || link.restless || channel.up || channel.reason.empty() ||
        channel.reason == seen.trouble) {
      continue;
    }
    seen.trouble = channel.reason;
    if (channel.reason != link.down_reason) {
      const bool refused = standing_of(peer, link, channel).phase == PeerPhase::refused;
      teller_.warn(refused ? SiteEvent::Kind::peer_refused : SiteEvent::Kind::peer_unreachable,
                   channel.reason, peer.name);
    }
  }
}

const TrustedPeer* PeerMonitor::line_of(Rank rank) const {
  const auto& lines = links_.lines();
  const auto line = std::ranges::find(lines, rank, &TrustedPeer::rank);
  return rank < 0 || line == lines.end() ? nullptr : &*line;
}

std::string PeerMonitor::way_of(Rank rank) const {
  const std::vector<ChannelTraffic> all = channels_.traffic();
  const auto channel = std::ranges::find(all, rank, &ChannelTraffic::peer);
  const TrustedPeer* line = line_of(rank);
  if (channel == all.end() || line == nullptr) {
    return "";
  }
  std::string way = channel->one_connection ? " over one connection" : "";
  if (const auto keys = line->keys(); keys.size() > 1) {
    const auto key = std::ranges::find_if(
        keys, [&](const PeerKey& one) { return one.key.text() == channel->key; });
    way += fmt::format(", with key {} of {} in the list, {}", key - keys.begin() + 1, keys.size(),
                       channel->key);
  }
  return way;
}

PeerStanding PeerMonitor::standing_of(const PeerState& peer, const PeerLink& link,
                                      const ChannelTraffic& channel) const {
  SitePeer trust = {.name = peer.name, .hears = false, .tells = false};
  if (const TrustedPeer* line = line_of(link.rank)) {
    trust.hears = line->may_send;
    trust.tells = line->send_to;
  }
  PeerStanding standing =
      sotto::standing_of(peer, trust, link.open, channel,
                         peer.settings.empty() ? "" : first_difference(settings_, peer.settings));
  const auto seen = seen_.find(peer.name);
  if (standing.phase == PeerPhase::up && standing.concern == PeerConcern::none &&
      seen != seen_.end() && seen->second.slow) {
    standing = {PeerPhase::up, PeerConcern::late,
                "it does less than half as many rounds as this site: rounds do not wait for it"};
  }
  return standing;
}

std::vector<SitePeerReport> PeerMonitor::reports() const {
  std::vector<SitePeerReport> reports;
  const std::vector<ChannelTraffic> traffic = channels_.traffic();
  for (const PeerState& peer : site_.peers()) {
    const PeerLink& link = links_.link(reports.size());
    SitePeerReport& report = reports.emplace_back();
    report.site = peer;
    report.connected = link.open;
    report.offences = peer.offences;
    if (const auto seen = seen_.find(peer.name); seen != seen_.end() && seen->second.advanced) {
      report.round_age_s = seconds_since(*seen->second.advanced);
    }
    if (const TrustedPeer* line = line_of(link.rank)) {
      report.hears = line->may_send;
      report.tells = line->send_to;
    }
    const auto found = std::ranges::find(traffic, link.rank, &ChannelTraffic::peer);
    const ChannelTraffic passed =
        link.rank >= 0 && found != traffic.end() ? *found : ChannelTraffic();
    report.bytes_sent = passed.bytes_sent;
    report.bytes_received = passed.bytes_received;
    report.ups = passed.ups;
    report.offences += passed.offences;
    report.contested = passed.contested;
    report.key = passed.key;
    report.key_until = end_of_key(line_of(link.rank), passed.key);
    report.one_connection = passed.one_connection;
    report.standing = standing_of(peer, link, passed);
  }
  return reports;
}

}  // namespace sotto
