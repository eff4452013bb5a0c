// Many rosters in virtual time: datagrams take a while, are lost, and find nobody; nodes are
// killed, leave, and come back. All that is random follows from one seed.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/sites/roster/roster.h>

namespace sotto::test {

using sites::Roster;
using sites::RosterTime;

class RosterWorld {
 public:
  /// How datagrams fare.
  struct Weather {
    double loss = 0.05;
    std::uint64_t slowest_ms = 200;
    bool refused_end = false;  // the processes that the run refuses
    double repeats = 0;        // datagrams that somebody records, and sends again within 20 s
  };

  RosterWorld(std::uint64_t seed, Weather weather)
      : weather_(weather), random_({.seed = seed, .purpose = Purpose::faults}) {}

  RosterTime now() const { return now_; }
  RandomStream& random() { return random_; }

  /// Starts a process at an address of its own, or at `address`.
  const std::string& start(const std::string& name, std::vector<std::string> seeds,
                           std::size_t least = 1, std::size_t most = 200,
                           std::string address = {}) {
    if (address.empty()) {
      address = "10.0.0." + std::to_string(++addresses_) + ":9000";
    }
    auto& place = nodes_[address];
    place = std::make_unique<Roster>(
        sites::RosterSetup{.name = name,
                           .incarnation = std::max<std::uint64_t>(random_.next_u64(), 1),
                           .life = static_cast<std::uint32_t>(1 + random_.below(1'000)),
                           .address = address,
                           .seeds = std::move(seeds),
                           .least = least,
                           .most = most,
                           .settings = settings_},
        now_);
    events_.push({now_ + RosterTime(random_.below(kTick)), ++number_, address, {}, {}});
    return nodes_.find(address)->first;
  }
  /// The settings of processes that start from now on.
  void set_settings(std::string settings) { settings_ = std::move(settings); }
  /// The process at an address ends at once.
  void kill(const std::string& address) { nodes_.erase(address); }
  /// Datagrams from one side do not reach the other, until heal().
  void cut(std::set<std::string> from, std::set<std::string> to) {
    cuts_.emplace_back(std::move(from), std::move(to));
  }
  void heal() { cuts_.clear(); }

  Roster& at(const std::string& address) { return *nodes_.at(address); }
  bool runs(const std::string& address) const { return nodes_.contains(address); }
  std::vector<std::string> addresses() const {
    std::vector<std::string> all;
    for (const auto& [address, roster] : nodes_) {
      all.push_back(address);
    }
    return all;
  }

  void run_for(RosterTime span) {
    const RosterTime end = now_ + span;
    while (!events_.empty() && events_.top().time <= end) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      const auto node = nodes_.find(event.to);
      if (node == nodes_.end()) {
        continue;
      }
      if (event.from.empty()) {
        node->second->tick(now_);
        events_.push({now_ + RosterTime(kTick), ++number_, event.to, {}, {}});
      } else {
        if (!node->second->receive(event.from, event.message, now_).ok()) {
          FAIL("a roster does not read what another wrote");
        }
      }
      carry(event.to);
      const auto standing = node->second->standing();
      if (weather_.refused_end &&
          (standing == sites::RosterStanding::duplicate ||
           standing == sites::RosterStanding::full || standing == sites::RosterStanding::other)) {
        nodes_.erase(node);
      }
    }
    now_ = end;
  }
  /// Sends what a node has released.
  void carry(const std::string& from) {
    for (sites::RosterDatagram& sent : nodes_.at(from)->released()) {
      bytes_ += sent.message.size();
      const bool lost = std::ranges::any_of(cuts_, [&](const auto& sides) {
        return sides.first.contains(from) && sides.second.contains(sent.to);
      });
      if (sent_) {
        sent_(from, sent);
      }
      if (weather_.repeats > 0 && random_.uniform() < weather_.repeats) {
        events_.push(
            {now_ + RosterTime(random_.below(20'000)), ++number_, sent.to, from, sent.message});
      }
      if (lost || random_.uniform() < weather_.loss) {
        continue;
      }
      events_.push({now_ + RosterTime(1 + random_.below(weather_.slowest_ms)), ++number_, sent.to,
                    from, std::move(sent.message)});
    }
  }

  /// From now on `heard` is told of each datagram that is sent, and by whom.
  void watch(
      std::function<void(const std::string& from, const sites::RosterDatagram& sent)> heard) {
    sent_ = std::move(heard);
  }
  /// Somebody sends a node a datagram in the name of `from`.
  void forge(const std::string& to, const std::string& from, std::vector<std::byte> message) {
    events_.push({now_, ++number_, to, from, std::move(message)});
  }

  /// Whether all that take part have equal books.
  bool agree() const {
    std::set<sites::RosterDigest> digests;
    for (const auto& [address, roster] : nodes_) {
      digests.insert(roster->book().digest());
    }
    return digests.size() <= 1;
  }
  /// Whether the edges that both ends keep connect all that run.
  bool connected() const {
    std::map<std::string, std::set<std::string>> edges;
    for (const auto& [address, roster] : nodes_) {
      for (const auto& member : roster->view().members) {
        if (member.neighbour) {
          edges[address].insert(member.entry.address);
        }
      }
    }
    std::set<std::string> reached;
    std::vector<std::string> next;
    if (!nodes_.empty()) {
      next.push_back(nodes_.begin()->first);
    }
    while (!next.empty()) {
      const std::string at = next.back();
      next.pop_back();
      if (!reached.insert(at).second) {
        continue;
      }
      for (const std::string& other : edges[at]) {
        if (edges[other].contains(at) && nodes_.contains(other)) {
          next.push_back(other);
        }
      }
    }
    return reached.size() == nodes_.size();
  }
  std::uint64_t bytes() const { return bytes_; }
  /// What each node sees, for those that look into a failure.
  std::string words() const {
    std::string text;
    for (const auto& [address, roster] : nodes_) {
      text += "\n" + address + " " + roster->self().name + ", standing " +
              std::to_string(static_cast<int>(roster->standing())) + ":";
      for (const auto& member : roster->view().members) {
        text += " " + member.entry.name + "/" + std::to_string(member.entry.incarnation % 1000) +
                "." + std::to_string(member.entry.version) + "@" + member.entry.address +
                (member.suspected ? "?" : "") + (member.conflict ? "!" : "") +
                (member.neighbour ? "=" : "") + (sites::is_gone(member.entry.phase) ? "-" : "");
      }
    }
    return text;
  }

 private:
  static constexpr std::uint64_t kTick = 200;  // ms
  struct Event {
    RosterTime time{0};
    std::uint64_t number = 0;
    std::string to;
    std::string from;  // empty: a tick
    std::vector<std::byte> message;
    bool operator<(const Event& other) const {
      return std::tie(other.time, other.number) < std::tie(time, number);
    }
  };

  Weather weather_;
  RandomStream random_;
  std::string settings_;
  RosterTime now_{0};
  std::map<std::string, std::unique_ptr<Roster>> nodes_;
  std::vector<std::pair<std::set<std::string>, std::set<std::string>>> cuts_;
  std::priority_queue<Event> events_;
  std::function<void(const std::string& from, const sites::RosterDatagram& sent)> sent_;
  std::uint64_t number_ = 0;
  std::uint64_t addresses_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace sotto::test
