#include <sotto/sites/process/site_links.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>

namespace sotto {

using sites::PeerState;
using sites::SitePeer;

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
                     sites::MixingKind exchange, SiteTeller teller)
    : site_(site),
      channels_(channels),
      list_(list),
      self_(self),
      exchange_(exchange),
      teller_(std::move(teller)),
      version_(list.version()) {
  read_list();
}

/// Where the site has its peers now, and which numbers they have.
void SiteLinks::read_list() {
  std::map<std::string, Rank> ranks;
  lines_ = list_.peers();
  for (const TrustedPeer& line : lines_) {
    if (line.rank != self_) {
      ranks[line.name] = line.rank;
    }
  }
  const std::vector<PeerState> peers = site_.peers();
  const std::vector<Link> before = std::exchange(links_, std::vector<Link>(peers.size()));
  const std::map<Rank, std::size_t> places = std::exchange(places_, {});
  std::map<Rank, std::uint64_t> offences;
  for (const ChannelTraffic& channel : channels_.traffic()) {
    offences[channel.peer] = channel.offences;
  }
  for (std::size_t place = 0; place < peers.size(); ++place) {
    const auto rank = ranks.find(peers[place].name);
    if (rank == ranks.end()) {
      continue;
    }
    if (const auto old = places.find(rank->second); old != places.end()) {
      links_[place] = before[old->second];
    } else {
      site_.peer_down(place);  // a channel by another number is not this one's
      links_[place].offences = offences[rank->second];
      links_[place].models = peers[place].models;
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
    teller_.warn(SiteEvent::Kind::peers_refused, error.what());
  }
  if (!left_out.empty()) {
    teller_.warn(SiteEvent::Kind::peers_refused,
                 fmt::format("left out, as {} needs trust both ways: {}", name_of(exchange_),
                             fmt::join(left_out, ", ")));
  }
  read_list();
}

std::optional<std::size_t> SiteLinks::place_of(Rank rank) const {
  const auto found = places_.find(rank);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

void SiteLinks::take(ChannelEvent event) {
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
      meet(*place);
      return;
    case ChannelEvent::Kind::message:
      (void)site_.receive(*place,
                          channels_.keep(std::move(event.message)));  // look() tells of an offence
      return;
    case ChannelEvent::Kind::down:
      if (link.open) {
        part(*place, event.reason);
      }
      return;
  }
}

void SiteLinks::meet(std::size_t place) {
  Link& link = links_[place];
  link.open = true;
  link.since = Deadline::Clock::now();
  link.churn.meet(link.since);
  ++link.meetings;
  site_.peer_up(place);
}

void SiteLinks::part(std::size_t place, const std::string& reason) {
  Link& link = links_[place];
  const auto now = Deadline::Clock::now();
  const PeerState peer = site_.peers()[place];
  for (; link.models < peer.models; ++link.models) {
    link.churn.sent_model(now);
  }
  link.open = false;
  site_.peer_down(place);
  link.down_reason = reason;
  note_offences();
  if (!link.restless) {
    teller_.warn(SiteEvent::Kind::peer_down, reason, peer.name);
  }
  if (link.churn.restless(now)) {
    link.busy = now;
    if (!std::exchange(link.restless, true)) {
      link.told = now - kTellEvery;
    }
    tell_of_meetings(link, peer.name);
    hang_up(place, std::chrono::ceil<std::chrono::milliseconds>(link.churn.lasts(now)));
  }
}

void SiteLinks::tell_of_meetings(Link& link, const std::string& name) {
  const auto now = Deadline::Clock::now();
  if (link.meetings == 0 || now - link.told < kTellEvery) {
    return;
  }
  link.told = now;
  teller_.warn(
      SiteEvent::Kind::peer_restless,
      fmt::format("it has connected again and again, {} times since that was told: it has to wait "
                  "for longer each time, and no single time is told any more; the last one: {}",
                  std::exchange(link.meetings, 0), link.down_reason),
      name);
}

void SiteLinks::look_at_restless() {
  const auto now = Deadline::Clock::now();
  for (std::size_t place = 0; place < links_.size(); ++place) {
    Link& link = links_[place];
    if (!link.restless) {
      link.meetings = link.churn.settled(now) ? 0 : link.meetings;
      continue;
    }
    const std::string& name = site_.peer_name(place);
    tell_of_meetings(link, name);
    if (!link.churn.restless(now) && now - link.busy >= kTellEvery) {
      link.restless = false;  // that it is up, if it is, the monitor tells
      if (!link.open) {
        teller_.warn(SiteEvent::Kind::peer_down, link.down_reason, name);
      }
    }
  }
}

Status SiteLinks::pump(Deadline deadline) {
  follow_list();
  for (int taken = 0; taken < kBatch; ++taken) {
    auto event = channels_.poll(taken == 0 ? deadline : Deadline::after({}));
    if (!event.ok()) {
      if (event.status().fault() != Fault::deadline) {
        return event.status();
      }
      break;
    }
    take(*std::move(event));
  }
  send();
  if (look_due_.expired()) {
    look_due_ = Deadline::after(kLookEvery);
    note_offences();
    look_at_restless();
  }
  return site_.alive();
}

void SiteLinks::send() {
  for (sites::Released& released : site_.released()) {
    const Link& link = links_[released.peer];
    if (!link.open) {
      continue;
    }
    if (released.hang_up) {
      hang_up(released.peer);
      continue;
    }
    // What is not sent would leave a gap in a stream: the two must meet anew.
    ChannelMessage message{.head = std::move(released.message), .body = released.payload};
    if (Status status = channels_.hand_over(link.rank, std::move(message));
        !status.ok() && status.fault() != Fault::peer_lost) {
      give_up_on(released.peer, status.message());
    }
  }
}

void SiteLinks::hang_up(std::size_t peer) { hang_up(peer, {}); }

void SiteLinks::hang_up(std::size_t peer, std::chrono::milliseconds at_least) {
  Link& link = links_[peer];
  constexpr int kForgiven = 100;  // pauses; by fewer a peer would fill the log with its offences
  if (Deadline::Clock::now() - link.since > kForgiven * link.pause) {
    link.pause = kFirstPause;
  }
  channels_.close(link.rank, std::max(link.pause, at_least));
  link.pause = std::min(2 * link.pause, kLongestPause);
}

void SiteLinks::note_offences() {
  for (const ChannelTraffic& channel : channels_.traffic()) {
    const auto place = place_of(channel.peer);
    if (place && channel.offences > links_[*place].offences) {
      links_[*place].offences = channel.offences;
      teller_.warn(SiteEvent::Kind::peer_offence, channel.reason, site_.peer_name(*place));
      hang_up(*place);
    }
  }
}

void SiteLinks::give_up_on(std::size_t peer, const std::string& reason) {
  teller_.warn(SiteEvent::Kind::peer_given_up, reason, site_.peer_name(peer));
  hang_up(peer);
}

}  // namespace sotto
