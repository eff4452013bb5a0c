#include <sotto/sites/elastic/elastic_links.h>

#include <algorithm>
#include <utility>

namespace sotto {

using sites::EpochMember;
using sites::EpochParcel;
using sites::EpochPeer;
using sites::EpochTime;
using sites::History;
using Level = SiteEvent::Level;
using Kind = SiteEvent::Kind;

std::vector<KnownNode> known_nodes(const sites::RosterView& view, const std::string& self) {
  std::vector<KnownNode> nodes;
  nodes.reserve(view.members.size());
  for (const sites::RosterMember& member : view.members) {
    const sites::RosterEntry& entry = member.entry;
    if (entry.name != self && !is_gone(entry.phase) && !member.conflict) {
      nodes.push_back({entry.name, entry.incarnation, member.suspected});
    }
  }
  return nodes;
}

void ElasticLinks::tell(Level level, Kind kind, std::string text, const std::string& peer) const {
  if (parts_.listener) {
    parts_.listener({level, kind, std::move(text), peer, {}, {}});
  }
}

void ElasticLinks::follow_list() {
  const std::uint64_t version = parts_.list.version();
  if (version == list_version_ && !names_.empty()) {
    return;
  }
  list_version_ = version;
  names_.clear();
  ranks_.clear();
  for (const TrustedPeer& line : parts_.list.peers()) {
    names_[line.rank] = line.name;
    ranks_[line.name] = line.rank;
  }
}

// -- what comes -----------------------------------------------------------------------------------

void ElasticLinks::take(ChannelEvent event, EpochMember* member) {
  if (event.kind == ChannelEvent::Kind::up) {
    follow_list();
    const auto name = names_.find(event.peer);
    if (name == names_.end()) {
      return;  // it has just left the list, and its channel ends
    }
    Link& link = links_[event.peer];
    link = {.name = name->second, .hello = {}, .told_other = false, .said = {}};
    say_hello(event.peer, link, hello_of(member));
    return;
  }
  const auto link = links_.find(event.peer);
  if (link == links_.end()) {
    return;
  }
  if (event.kind == ChannelEvent::Kind::message) {
    take_message(event.peer, std::move(event.message), member);
    return;
  }
  const bool greeted = link->second.hello.has_value();
  const std::string name = link->second.name;
  links_.erase(link);
  if (greeted) {
    tell(Level::warning, Kind::peer_down, event.reason, name);
  }
}

void ElasticLinks::take_message(Rank peer, std::vector<std::byte> message, EpochMember* member) {
  if (is_hello(message)) {
    if (const auto hello = parse_hello(message)) {
      greet(peer, *hello);
    } else {
      refuse_peer(peer, "its hello is malformed, or of another version of sotto");
    }
    return;
  }
  const Link& link = links_.at(peer);
  if (!link.hello) {
    refuse_peer(peer, "it sent a message before its hello");
  } else if (member != nullptr) {
    const Status status = member->receive(link.name, link.hello->incarnation,
                                          parts_.channels.keep(std::move(message)), parts_.clock());
    if (!status.ok()) {
      refuse_peer(peer, status.message());
    }
  }
}

void ElasticLinks::greet(Rank peer, const ElasticHello& hello) {
  Link& link = links_.at(peer);
  if (link.hello && link.hello->incarnation != hello.incarnation) {
    refuse_peer(peer, "it named two processes on one channel");
    return;
  }
  if (!link.hello) {
    tell(Level::info, Kind::peer_up, "the channel is open", link.name);
  }
  link.hello = hello;
  met_.insert({link.name, hello.incarnation});
}

void ElasticLinks::refuse_peer(Rank peer, const std::string& why) {
  tell(Level::warning, Kind::peer_offence, why, links_.at(peer).name);
  parts_.channels.close(peer, kPause);
}

// -- what the member is told ----------------------------------------------------------------------

std::vector<EpochPeer> ElasticLinks::peers_now() {
  const EpochTime now = parts_.clock();
  std::map<Key, bool> suspected;
  for (const KnownNode& node : nodes_) {
    const Key key{node.name, node.incarnation};
    const EpochTime since = since_.try_emplace(key, now).first->second;
    const bool comes =
        !node.suspected && !met_.contains(key) && now - since < parts_.connect_within;
    suspected[key] = !comes;
  }
  for (const auto& [rank, link] : links_) {
    if (link.hello) {
      suspected[{link.name, link.hello->incarnation}] = false;
    }
  }
  std::erase_if(since_, [&](const auto& item) { return !suspected.contains(item.first); });
  std::erase_if(met_, [&](const Key& key) { return !suspected.contains(key); });
  std::vector<EpochPeer> peers;
  peers.reserve(suspected.size());
  for (const auto& [key, is_suspected] : suspected) {
    peers.push_back({key.first, key.second, is_suspected});
  }
  return peers;
}

void ElasticLinks::move_clock(EpochMember& member) {
  std::vector<EpochPeer> peers = peers_now();
  const bool changed = peers != told_;
  if (changed) {
    member.set_peers(peers);
    told_ = std::move(peers);
  }
  const EpochTime now = parts_.clock();
  const EpochTime every = member.copies() ? kCopyEvery : kTickEvery;
  if (changed || !ticked_ || now - *ticked_ >= every) {
    ticked_ = now;
    member.tick(now);
  }
}

bool ElasticLinks::is_elsewhere(const Link& link) const {
  return link.hello && link.hello->history != History{} && history_ != History{} &&
         link.hello->history != history_;
}

ElasticHello ElasticLinks::hello_of(const EpochMember* member) const {
  ElasticHello hello{.incarnation = parts_.incarnation, .self = self_};
  if (member != nullptr) {
    hello.history = member->history();
    hello.steps = member->step();
    hello.member = member->standing() == sites::EpochStanding::member ||
                   member->standing() == sites::EpochStanding::leaving;
    hello.hears = !hello.member && hello.history != History{} && hears_member_of(hello.history);
  }
  return hello;
}

void ElasticLinks::say_hello(Rank peer, Link& link, const ElasticHello& hello) {
  link.said = parts_.clock();
  // One that is lost before it arrives is said anew with the next channel.
  static_cast<void>(parts_.channels.send(peer, encode(hello)));
}

void ElasticLinks::follow_run(const EpochMember* member) {
  const ElasticHello hello = hello_of(member);
  history_ = hello.history;
  ElasticHello news = hello;
  news.steps = 0;
  news.self.model = hello.member ? 0 : hello.self.model;  // of a run that goes on nobody asks
  const bool changed = std::exchange(hello_, news) != news;
  for (auto& [rank, link] : links_) {
    const bool other = is_elsewhere(link);
    if (changed || (other && parts_.clock() - link.said >= kSayAgain)) {
      say_hello(rank, link, hello);
    }
    if (other && link.hello->member && !link.told_other) {
      tell(Level::warning, Kind::other_run,
           "it is in another run, which was begun apart from this one: neither hears the other, "
           "and the one that has made fewer steps ends",
           link.name);
    }
    link.told_other = other && (link.told_other || link.hello->member);
  }
}

std::optional<std::string> ElasticLinks::outrun_by(const EpochMember& member) const {
  if (member.standing() != sites::EpochStanding::member) {
    return std::nullopt;
  }
  const auto ahead = [&](const auto& item) {
    const Link& link = item.second;
    return is_elsewhere(link) && link.hello->member && !link.hello->self.stuck &&
           std::pair(member.step(), link.hello->history) < std::pair(link.hello->steps, history_);
  };
  const auto found = std::ranges::find_if(links_, ahead);
  return found == links_.end() ? std::nullopt : std::optional(found->second.name);
}

Status ElasticLinks::send(EpochMember& member) {
  if (member.votes_changed()) {
    const std::vector<std::byte> votes = member.founding_votes();
    if (Status status = parts_.keep(votes); !status.ok()) {
      return status;
    }
  }
  for (EpochParcel& parcel : member.released()) {
    const auto rank = ranks_.find(parcel.name);
    const auto link = rank == ranks_.end() ? links_.end() : links_.find(rank->second);
    if (link != links_.end() && link->second.hello &&
        link->second.hello->incarnation == parcel.incarnation) {
      // What a full queue or a lost channel drops is said again by the protocol.
      (void)parts_.channels.hand_over(
          link->first, {.head = std::move(parcel.message), .body = std::move(parcel.tail)});
    }
  }
  return {};
}

Status ElasticLinks::pump(Deadline deadline, EpochMember* member) {
  follow_list();
  // What the caller has made the member say must not wait for what others say.
  if (member != nullptr) {
    if (Status status = send(*member); !status.ok()) {
      return status;
    }
  }
  for (int taken = 0; taken < kBatch; ++taken) {
    auto event = parts_.channels.poll(taken == 0 ? deadline : Deadline::after({}));
    if (!event.ok()) {
      if (event.status().fault() != Fault::deadline) {
        return event.status();
      }
      break;
    }
    take(*std::move(event), member);
  }
  follow_run(member);
  if (member == nullptr) {
    return {};
  }
  move_clock(*member);
  return send(*member);
}

// -- what the founder asks ------------------------------------------------------------------------

bool ElasticLinks::is_greeted(const sites::EpochNode& node) const {
  return std::ranges::any_of(links_, [&](const auto& item) {
    const auto& hello = item.second.hello;
    return item.second.name == node.name && hello && hello->incarnation == node.incarnation;
  });
}

bool ElasticLinks::all_greeted() const {
  return std::ranges::all_of(nodes_, [&](const KnownNode& node) {
    return node.suspected || is_greeted({node.name, node.incarnation, 0});
  });
}

bool ElasticLinks::hears_of_run() const {
  return std::ranges::any_of(links_, [](const auto& item) {
    const auto& hello = item.second.hello;
    return hello && (hello->member || hello->hears);
  });
}

bool ElasticLinks::hears_member_of(const History& run) const {
  return std::ranges::any_of(links_, [&](const auto& item) {
    const auto& hello = item.second.hello;
    return hello && hello->member && hello->history == run;
  });
}

std::map<std::string, ElasticHello> ElasticLinks::heard() const {
  std::map<std::string, ElasticHello> all;
  for (const auto& [rank, link] : links_) {
    if (link.hello) {
      all.insert_or_assign(link.name, *link.hello);
    }
  }
  return all;
}

}  // namespace sotto
