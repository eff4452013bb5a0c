#include <sotto/trainers/federated/site_links.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/trainers/settings.h>

namespace sotto {

using federated::PeerState;
using federated::SitePeer;
using Level = SiteEvent::Level;

std::vector<SitePeer> site_peers(const std::vector<TrustedPeer>& lines, Rank self,
                                 federated::Exchange exchange, std::vector<std::string>* left_out) {
  std::vector<SitePeer> peers;
  for (const TrustedPeer& line : lines) {
    if (line.rank == self || !(line.may_send || line.send_to)) {
      continue;
    }
    const bool mutual = line.may_send && line.send_to;
    if (exchange == federated::Exchange::gossip && !mutual && left_out != nullptr) {
      left_out->push_back(line.name);
      continue;
    }
    peers.push_back({.name = line.name, .hears = line.may_send, .tells = line.send_to});
  }
  return peers;
}

SiteLinks::SiteLinks(federated::Site& site, Channels& channels, const AllowList& list, Rank self,
                     federated::Exchange exchange, std::string settings, SiteListener listener)
    : site_(site),
      channels_(channels),
      list_(list),
      self_(self),
      exchange_(exchange),
      settings_(std::move(settings)),
      listener_(std::move(listener)),
      version_(list.version()) {
  read_list();
}

void SiteLinks::tell(Level level, std::string_view kind, std::string text, std::string peer) const {
  listener_({level, kind, std::move(text), std::move(peer), site_.round()});
}

/// Where the site has its peers now, and which numbers they have.
void SiteLinks::read_list() {
  std::map<std::string, Rank> ranks;
  for (const TrustedPeer& line : list_.peers()) {
    if (line.rank != self_) {
      ranks[line.name] = line.rank;
    }
  }
  const std::vector<PeerState> peers = site_.peers();
  const std::vector<Link> before = std::exchange(links_, std::vector<Link>(peers.size()));
  const std::map<Rank, std::size_t> places = std::exchange(places_, {});
  for (std::size_t place = 0; place < peers.size(); ++place) {
    const auto rank = ranks.find(peers[place].name);
    if (rank == ranks.end()) {
      continue;
    }
    if (const auto old = places.find(rank->second); old != places.end()) {
      links_[place] = before[old->second];
    }
    links_[place].rank = rank->second;
    places_[rank->second] = place;
  }
  for (const auto& [rank, place] : places_) {
    if (open_.contains(rank) && !links_[place].open) {
      channels_.close(rank, {});  // its channel is from before the site knew it: they meet anew
    }
  }
}

void SiteLinks::follow_list() {
  const std::uint64_t version = list_.version();
  if (version == version_) {
    return;
  }
  version_ = version;
  std::vector<std::string> left_out;
  try {
    site_.update_peers(site_peers(list_.peers(), self_, exchange_, &left_out));
  } catch (const Error& error) {
    tell(Level::warning, "peers-refused", error.what());
  }
  if (!left_out.empty()) {
    tell(Level::warning, "peers-refused",
         fmt::format("left out, as gossip needs trust both ways: {}", fmt::join(left_out, ", ")));
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
      if (Status status = site_.receive(*place, event.message); !status.ok()) {
        tell(Level::warning, "peer-offence", status.message(), site_.peers()[*place].name);
      }
      return;
    case ChannelEvent::Kind::down:
      if (link.open) {
        link.open = false;
        site_.peer_down(*place);
        link.said = event.reason;
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
  for (const federated::Released& released : site_.released()) {
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

void SiteLinks::give_up_on(std::size_t peer, const std::string& reason) {
  tell(Level::warning, "peer-given-up", reason, site_.peers()[peer].name);
  hang_up(peer);
}

void SiteLinks::look() {
  const std::vector<PeerState> peers = site_.peers();
  for (std::size_t place = 0; place < peers.size(); ++place) {
    const PeerState& peer = peers[place];
    Link& link = links_[place];
    if (peer.up && !link.met) {
      link.said.clear();
      tell(Level::info, "peer-up", fmt::format("in touch; it has come to round {}", peer.round),
           peer.name);
    }
    link.met = peer.up;
    const std::string trouble = trouble_of(peer);
    if (!peer.up && peer.refused && !trouble.empty() && trouble != link.said) {
      link.said = trouble;
      tell(Level::warning, "peer-refused", trouble, peer.name);
    }
  }
  look_for_unreachable(peers);
}

/// Those whose channel does not open, and why.
void SiteLinks::look_for_unreachable(const std::vector<PeerState>& peers) {
  if (!unreachable_looked_.expired()) {
    return;
  }
  unreachable_looked_ = Deadline::after(kUnreachableEvery);
  for (const ChannelTraffic& passed : channels_.traffic()) {
    const auto place = place_of(passed.peer);
    if (!place || links_[*place].open || passed.up || passed.trouble.empty() ||
        passed.trouble == links_[*place].said) {
      continue;
    }
    links_[*place].said = passed.trouble;
    tell(Level::warning, "peer-unreachable", passed.trouble, peers[*place].name);
  }
}

std::string SiteLinks::trouble_of(const PeerState& peer) const {
  const std::string difference =
      peer.settings.empty() ? "" : first_difference(settings_, peer.settings);
  return difference.empty() ? peer.trouble : fmt::format("other settings: {}", difference);
}

std::vector<SitePeerReport> SiteLinks::reports() const {
  std::vector<SitePeerReport> reports;
  const std::vector<TrustedPeer> lines = list_.peers();
  const std::vector<ChannelTraffic> traffic = channels_.traffic();
  for (const PeerState& peer : site_.peers()) {
    SitePeerReport& report = reports.emplace_back();
    const Link& link = links_[reports.size() - 1];
    report.site = peer;
    report.connected = link.open;
    report.trouble = trouble_of(peer);
    report.offences = peer.offences;
    const auto line = std::ranges::find(lines, link.rank, &TrustedPeer::rank);
    if (link.rank >= 0 && line != lines.end()) {
      report.hears = line->may_send;
      report.tells = line->send_to;
    }
    const auto passed = std::ranges::find(traffic, link.rank, &ChannelTraffic::peer);
    if (link.rank >= 0 && passed != traffic.end()) {
      report.bytes_sent = passed->bytes_sent;
      report.bytes_received = passed->bytes_received;
      report.ups = passed->ups;
      report.offences += passed->offences;
      if (report.trouble.empty() && !link.open) {
        report.trouble = passed->trouble;
      }
    }
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
