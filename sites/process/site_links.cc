#include <sotto/sites/process/site_links.h>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/elapsed.h>
#include <sotto/base/error.h>
#include <sotto/trainers/settings/agreed_settings.h>

namespace sotto {

using sites::PeerState;
using sites::SitePeer;
using Level = SiteEvent::Level;

namespace {

/// The event that tells of what a peer makes a habit of (peer_standing.h).
std::string_view event_of(std::string_view habit) {
  using Event = std::pair<std::string_view, std::string_view>;
  constexpr auto kEvents = std::to_array<Event>({{"takes", "peer-takes"},
                                                 {"confirms-nothing", "peer-confirms-nothing"},
                                                 {"sends-nothing", "peer-sends-nothing"},
                                                 {"mints", "peer-mints"},
                                                 {"far-ahead", "peer-far-ahead"},
                                                 {"barred", "peer-barred"}});
  const auto* const found = std::ranges::find(kEvents, habit, &Event::first);
  return found == kEvents.end() ? "peer-late" : found->second;
}

}  // namespace

std::vector<SitePeer> site_peers(const std::vector<TrustedPeer>& lines, Rank self,
                                 sites::MixingKind exchange, std::vector<std::string>* left_out) {
  std::vector<SitePeer> peers;
  for (const TrustedPeer& line : lines) {
    if (line.rank == self || !(line.may_send || line.send_to)) {
      continue;
    }
    const bool mutual = line.may_send && line.send_to;
    if (exchange != sites::MixingKind::push_sum && !mutual && left_out != nullptr) {
      left_out->push_back(line.name);
      continue;
    }
    peers.push_back({.name = line.name, .hears = line.may_send, .tells = line.send_to});
  }
  return peers;
}

SiteLinks::SiteLinks(sites::Site& site, Channels& channels, const AllowList& list, Rank self,
                     sites::MixingKind exchange, bool observer, std::string settings,
                     SiteListener listener)
    : site_(site),
      channels_(channels),
      list_(list),
      self_(self),
      exchange_(exchange),
      observer_(observer),
      settings_(std::move(settings)),
      listener_(std::move(listener)),
      version_(list.version()) {
  read_list();
}

void SiteLinks::tell(Level level, std::string_view kind, std::string text, std::string peer,
                     std::vector<SiteFigure> figures) const {
  listener_({level, kind, std::move(text), std::move(peer), site_.round(), std::move(figures)});
}

/// Where the site has its peers now, and which numbers they have.
void SiteLinks::read_list() {
  std::map<std::string, Rank> ranks;
  lines_ = list_.peers();
  for (const TrustedPeer& line : lines_) {
    for (const PeerKey& one : line.keys()) {
      if (names_.size() < kMostKeys) {
        names_[one.key.text()] = line.name;
      }
    }
    if (line.rank != self_) {
      ranks[line.name] = line.rank;
    }
  }
  const std::vector<PeerState> peers = site_.peers();
  const std::vector<Link> before = std::exchange(links_, std::vector<Link>(peers.size()));
  const std::map<Rank, std::size_t> places = std::exchange(places_, {});
  std::map<Rank, std::uint64_t> channel_offences;
  for (const ChannelTraffic& channel : channels_.traffic()) {
    channel_offences[channel.peer] = channel.offences;
  }
  for (std::size_t place = 0; place < peers.size(); ++place) {
    const auto rank = ranks.find(peers[place].name);
    if (rank == ranks.end()) {
      continue;
    }
    if (const auto old = places.find(rank->second); old != places.end()) {
      links_[place] = before[old->second];
    } else {
      links_[place].offences = peers[place].offences;
      links_[place].channel_offences = channel_offences[rank->second];
    }
    links_[place].rank = rank->second;
    places_[rank->second] = place;
  }
  if (std::ranges::none_of(lines_, [this](const TrustedPeer& line) {
        return line.rank != self_ && (line.may_send || line.send_to);
      })) {
    tell(Level::warning, "trusts-nobody",
         "the list of peers allows nobody to send, and nobody is sent to: the site trains alone");
  }
  name_send_only();
  for (const auto& [rank, place] : places_) {
    if (open_.contains(rank) && !links_[place].open) {
      channels_.close(rank, {});  // its channel is from before the site knew it: they meet anew
    }
  }
}

void SiteLinks::name_send_only() const {
  std::vector<std::string> names;
  for (const TrustedPeer& line : lines_) {
    if (line.rank != self_ && line.send_to && !line.may_send && !observer_) {
      names.push_back(line.name);
    }
  }
  if (!names.empty()) {
    tell(Level::info, "send-only",
         fmt::format("sends to {} and lets none of them send: unless they are observers, or lead "
                     "back here by way of others, each takes weight from this site",
                     fmt::join(names, ", ")));
  }
}

void SiteLinks::follow_list() {
  const std::uint64_t version = list_.version();
  if (version == version_) {
    return;
  }
  version_ = version;
  keys_told_.clear();
  std::vector<std::string> left_out;
  try {
    site_.update_peers(site_peers(list_.peers(), self_, exchange_, &left_out));
  } catch (const Error& error) {
    tell(Level::warning, "peers-refused", error.what());
  }
  if (!left_out.empty()) {
    tell(Level::warning, "peers-refused",
         fmt::format("left out, as {} needs trust both ways: {}", name_of(exchange_),
                     fmt::join(left_out, ", ")));
  }
  read_list();
}

std::optional<std::size_t> SiteLinks::place_of(Rank rank) const {
  const auto found = places_.find(rank);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

void SiteLinks::take(const ChannelEvent& event) {
  if (event.kind == ChannelEvent::Kind::up) {
    open_.insert(event.peer);
  } else if (event.kind == ChannelEvent::Kind::down) {
    open_.erase(event.peer);
  }
  const auto place = place_of(event.peer);
  if (!place) {
    return;  // no longer in the list, or left out
  }
  Link& link = links_[*place];
  switch (event.kind) {
    case ChannelEvent::Kind::up:
      link.open = true;
      link.since = Deadline::Clock::now();
      site_.peer_up(*place);
      return;
    case ChannelEvent::Kind::message:
      static_cast<void>(site_.receive(*place, event.message));  // look() tells of an offence
      return;
    case ChannelEvent::Kind::down:
      if (link.open) {
        link.open = false;
        site_.peer_down(*place);
        link.said = event.reason;
        for (const ChannelTraffic& channel : channels_.traffic()) {
          if (channel.peer == event.peer) {
            note_channel_offences(*place, channel);
          }
        }
        tell(Level::warning, "peer-down", event.reason, site_.peers()[*place].name);
      }
      return;
  }
}

Status SiteLinks::pump(Deadline deadline) {
  follow_list();
  for (int taken = 0; taken < kBatch; ++taken) {
    const auto event = channels_.poll(taken == 0 ? deadline : Deadline::after({}));
    if (!event.ok()) {
      if (event.status().fault() != Fault::deadline) {
        return event.status();
      }
      break;
    }
    take(*event);
  }
  send();
  look();
  return site_.alive();
}

void SiteLinks::send() {
  for (const sites::Released& released : site_.released()) {
    const Link& link = links_[released.peer];
    if (!link.open) {
      continue;
    }
    if (released.hang_up) {
      hang_up(released.peer);
      continue;
    }
    // What is not sent would leave a gap in a stream: the two must meet anew.
    if (Status status = channels_.send(link.rank, released.message);
        !status.ok() && status.fault() != Fault::peer_lost) {
      give_up_on(released.peer, status.message());
    }
  }
}

void SiteLinks::hang_up(std::size_t peer) {
  Link& link = links_[peer];
  if (Deadline::Clock::now() - link.since > 10 * link.pause) {
    link.pause = kFirstPause;
  }
  channels_.close(link.rank, link.pause);
  link.pause = std::min(2 * link.pause, kLongestPause);
}

void SiteLinks::note_channel_offences(std::size_t place, const ChannelTraffic& channel) {
  Link& link = links_[place];
  if (channel.offences > link.channel_offences) {
    link.channel_offences = channel.offences;
    tell(Level::warning, "peer-offence", channel.reason, site_.peers()[place].name);
    hang_up(place);
  }
}

void SiteLinks::give_up_on(std::size_t peer, const std::string& reason) {
  tell(Level::warning, "peer-given-up", reason, site_.peers()[peer].name);
  hang_up(peer);
}

void SiteLinks::look() {
  const std::vector<PeerState> peers = site_.peers();
  for (std::size_t place = 0; place < peers.size(); ++place) {
    const PeerState& peer = peers[place];
    Link& link = links_[place];
    if (peer.round != link.round || (peer.up && !link.advanced)) {
      link.round = peer.round;
      link.advanced = Deadline::Clock::now();
    }
    if (peer.offences > link.offences) {
      link.offences = peer.offences;
      tell(Level::warning, "peer-offence", fmt::format("it broke a rule: {}", peer.trouble),
           peer.name);
    }
    const PeerStanding standing = standing_of(place, peer, {});
    if (peer.up && !link.met) {
      link.said.clear();
      tell(Level::info, "peer-up",
           fmt::format("in touch{}; it has come to round {}{}{}", way_of(link.rank), peer.round,
                       standing.text.empty() ? "" : "; ", standing.text),
           peer.name, {{"peer_round", peer.round}});
    }
    link.met = peer.up;
    look_at_habit(standing, peer.name, link);
    if (standing.state == "refused" && !standing.text.empty() && standing.text != link.said) {
      link.said = standing.text;
      tell(Level::warning, "peer-refused", standing.text, peer.name);
    }
  }
  if (look_due_.expired()) {
    look_due_ = Deadline::after(kLookEvery);
    look_at_channels(peers);
    look_at_refused_keys();
    look_at_strangers();
  }
}

/// A crowd is told of when it begins, and again when it has not ended for a while.
void SiteLinks::look_at_strangers() {
  const Strangers strangers = channels_.strangers();
  if (strangers.cut == strangers_cut_ || !crowd_due_.expired()) {
    return;
  }
  tell(Level::warning, "door-crowded",
       fmt::format("{} connections that had not proved a key were ended to make room for others; "
                   "{} are there, of {} at most",
                   strangers.cut - strangers_cut_, strangers.waiting, strangers.room));
  strangers_cut_ = strangers.cut;
  crowd_due_ = Deadline::after(kLongestSilence);
}

/// By which key, where it has several, and by which connection.
std::string SiteLinks::way_of(Rank rank) const {
  const std::vector<ChannelTraffic> all = channels_.traffic();
  const auto channel = std::ranges::find(all, rank, &ChannelTraffic::peer);
  const auto line = std::ranges::find(lines_, rank, &TrustedPeer::rank);
  if (channel == all.end() || line == lines_.end()) {
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

void SiteLinks::look_at_habit(const PeerStanding& standing, const std::string& name,
                              Link& link) const {
  const bool up = standing.state == "up" && standing.reason != "one-sided";
  const std::string_view habit = up ? standing.reason : std::string_view();
  if (up && habit != link.habit) {
    link.habit = habit;
    if (!standing.text.empty()) {
      tell(habit == "late" ? Level::info : Level::warning, event_of(habit), standing.text, name);
    }
  }
}

void SiteLinks::look_at_channels(const std::vector<PeerState>& peers) {
  for (const ChannelTraffic& channel : channels_.traffic()) {
    const auto place = place_of(channel.peer);
    if (!place) {
      continue;
    }
    Link& link = links_[*place];
    note_channel_offences(*place, channel);
    if (channel.contested && !link.contested) {
      tell(Level::warning, "peer-contested",
           "two processes have its key: one is in touch, and another one connects",
           peers[*place].name);
    }
    link.contested = channel.contested;
    if (link.open || channel.up || channel.reason.empty() || channel.reason == link.said) {
      continue;
    }
    link.said = channel.reason;
    const bool refused = standing_of(*place, peers[*place], channel).state == "refused";
    tell(Level::warning, refused ? "peer-refused" : "peer-unreachable", channel.reason,
         peers[*place].name);
  }
}

void SiteLinks::look_at_refused_keys() {
  if (!keys_due_.expired()) {
    return;
  }
  bool told = false;
  for (const SiteRefusedKey& key : refused_keys()) {
    if (keys_told_.size() == kMostKeys) {
      keys_told_.clear();
    }
    if (!keys_told_.insert(key.refused.key).second) {
      continue;
    }
    told = true;
    tell(Level::warning, "key-refused",
         fmt::format("not let in from {}: the key {} {}", key.refused.address, key.refused.key,
                     key.name.empty() ? "is not in the list of peers"
                     : key.listed     ? "has a line in the list of peers that allows it nothing"
                                      : "was in the list of peers, and is not any more"),
         key.name);
  }
  if (told) {
    keys_due_ = Deadline::after(key_pause_);
    key_pause_ = std::min(2 * key_pause_, kLongestSilence);
  }
}

std::vector<SiteRefusedKey> SiteLinks::refused_keys() const {
  std::vector<SiteRefusedKey> found;
  for (RefusedKey& refused : channels_.refused_keys().latest) {
    const auto name = names_.find(refused.key);
    const bool listed = std::ranges::any_of(lines_, [&](const TrustedPeer& line) {
      return std::ranges::any_of(line.keys(),
                                 [&](const PeerKey& one) { return one.key.text() == refused.key; });
    });
    found.push_back({.refused = std::move(refused),
                     .name = name == names_.end() ? "" : name->second,
                     .listed = listed});
  }
  return found;
}

PeerStanding SiteLinks::standing_of(std::size_t place, const PeerState& peer,
                                    const ChannelTraffic& channel) const {
  const Link& link = links_[place];
  SitePeer trust = {.name = peer.name, .hears = false, .tells = false};
  if (const auto line = std::ranges::find(lines_, link.rank, &TrustedPeer::rank);
      link.rank >= 0 && line != lines_.end()) {
    trust.hears = line->may_send;
    trust.tells = line->send_to;
  }
  return sotto::standing_of(
      peer, trust, link.open, channel,
      peer.settings.empty() ? "" : first_difference(settings_, peer.settings));
}

std::vector<SitePeerReport> SiteLinks::reports() const {
  std::vector<SitePeerReport> reports;
  const std::vector<ChannelTraffic> traffic = channels_.traffic();
  for (const PeerState& peer : site_.peers()) {
    SitePeerReport& report = reports.emplace_back();
    const std::size_t place = reports.size() - 1;
    const Link& link = links_[place];
    report.site = peer;
    report.connected = link.open;
    report.offences = peer.offences;
    if (link.advanced) {
      report.round_age_s = seconds_since(*link.advanced);
    }
    const auto line = std::ranges::find(lines_, link.rank, &TrustedPeer::rank);
    if (link.rank >= 0 && line != lines_.end()) {
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
    report.one_connection = passed.one_connection;
    report.standing = standing_of(place, peer, passed);
  }
  return reports;
}

std::uint64_t SiteLinks::bytes_sent() const {
  std::uint64_t sum = 0;
  for (const ChannelTraffic& passed : channels_.traffic()) {
    sum += passed.bytes_sent;
  }
  return sum;
}

}  // namespace sotto
