// What lies between the real sites of `sitelab`: a relay of TCP on loopback for each
// site and each peer of it, through which the site reaches that peer. It can stop what goes one
// way, slow it down, and break connections in the middle of a message, as networks do.
//
// A way that is closed holds what is on it, ends of connections too, as TCP does that gets no
// answer; and nobody connects across it.
//
// Thread safety: any thread; relaying happens in a thread of its own. Owns all its sockets.
#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <sotto/base/file_descriptor.h>
#include <sotto/base/ids.h>
#include <sotto/sim/network/platform.h>
#include <sotto/sites/faults/site_liveness.h>

namespace sotto::sitelab {

class Relays final : public Ways {
 public:
  /// `link` lies between any two of so many sites.
  Relays(int sites, const LinkSpec& link);
  ~Relays() override;
  Relays(const Relays&) = delete;
  Relays& operator=(const Relays&) = delete;

  /// Where `from` reaches `to`: a port of loopback, always the same one. Begins to relay there.
  int open(Rank from, Rank to);
  /// Where the process of a site listens from now on.
  void lead_to(Rank site, int port);

  /// Blocks nest: a way is open again after as many calls of unblock.
  void block(Rank from, Rank to);
  void unblock(Rank from, Rank to);
  /// None: as at first. Of what goes from one to the other.
  void set_link(Rank from, Rank to, std::optional<LinkSpec> link);
  /// Connections between the two break when `bytes` more have gone along one of them. False when
  /// there is none.
  bool reset(Rank a, Rank b, std::uint64_t bytes);

  bool open_both_ways(Rank a, Rank b) const override;
  bool slowed(Rank a, Rank b) const override;

 private:
  using Clock = std::chrono::steady_clock;

  struct Way {
    int blocked = 0;
    std::optional<LinkSpec> changed;
    Clock::time_point free{};  ///< the time when what was last taken is through
  };
  struct Entrance {
    FileDescriptor listener;
    int port = 0;
    Rank from = 0;
    Rank to = 0;
  };
  struct Piece {
    Clock::time_point due;
    std::vector<char> bytes;
    std::size_t gone = 0;
  };
  /// What goes one way along a connection.
  struct Flow {
    std::deque<Piece> pieces;
    std::size_t held = 0;
    bool ended = false;  ///< whether its sender sends no more
    bool lost = false;   ///< whether its receiver takes no more
  };
  /// Joins who has connected (end 0) and whom it wants (end 1); flow k comes from end k.
  struct Connection {
    Rank from = 0;
    Rank to = 0;
    FileDescriptor ends[2];
    Flow flows[2];
    std::optional<std::uint64_t> bytes_left;
    bool over = false;
    bool broken = false;  ///< … in the middle of what it carried
  };

  std::size_t place(Rank from, Rank to) const {
    return static_cast<std::size_t>(from) * sites_ + static_cast<std::size_t>(to);
  }
  Way& way(Rank from, Rank to) { return ways_[place(from, to)]; }
  const Way& way(Rank from, Rank to) const { return ways_[place(from, to)]; }
  /// The way that flow `flow` of the connection takes.
  Way& way_of(const Connection& connection, std::size_t flow) {
    return flow == 0 ? way(connection.from, connection.to) : way(connection.to, connection.from);
  }
  const Way& way_of(const Connection& connection, std::size_t flow) const {
    return flow == 0 ? way(connection.from, connection.to) : way(connection.to, connection.from);
  }
  const LinkSpec& link_of(const Way& way) const { return way.changed ? *way.changed : link_; }
  void relay();
  void accept_at(const Entrance& entrance);
  /// What to wait for: the bell, then entrances, then the ends of connections.
  std::vector<pollfd> wanted(Clock::time_point now) const;
  pollfd wanted(const Connection& connection, std::size_t end, Clock::time_point now) const;
  /// When something is due, or can be looked at again.
  Clock::time_point next_due(Clock::time_point now) const;
  void move_on(std::span<const pollfd> ends);
  void take(Connection& connection, std::size_t flow);
  void give(Connection& connection, std::size_t flow, Clock::time_point now);
  static void break_off(const Connection& connection);
  void wake();

  std::size_t sites_;
  LinkSpec link_;
  mutable std::mutex mutex_;
  std::vector<Way> ways_;
  std::vector<int> ports_;  ///< each site's port
  std::vector<Entrance> entrances_;
  std::vector<std::unique_ptr<Connection>> connections_;
  FileDescriptor bell_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace sotto::sitelab
