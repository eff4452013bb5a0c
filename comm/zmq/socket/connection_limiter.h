// Shares a listening socket's room out among those that have not proved a key: which connections
// are ended so that others find room, and which attempts the kernel drops.
//
// A stranger can hold a connection for the time of a handshake, and any number of them. Room is
// therefore shared out by source, an IPv4 address or the first 64 bits of an IPv6 address: when
// there is no room left, the oldest connection of the source with the most of them is ended. One
// connection from a source of its own is the last to be ended; one that shares a source with
// strangers has the time until that many others have come from there.
//
// Sources where peers are, by the list or because a listed key came from there, have a few
// connections each beside that room. What comes faster than it can be looked at is dropped by the
// kernel until the next window begins, source by source, and strangers before peers' sources.
//
// Pure; not thread-safe. Ownership: copies.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/comm/deadline.h>

namespace sotto::internal {

/// The origin of connections, as far as one owner's addresses are not told apart.
struct Source {
  bool ipv6 = false;
  std::uint64_t prefix = 0;  ///< an IPv4 address, or the first 64 bits of an IPv6 address
  auto operator<=>(const Source&) const = default;
};

/// The source of an address; nothing for other families than IP. An IPv4 address inside an IPv6
/// address is an IPv4 address.
std::optional<Source> source_of(const sockaddr_storage& address);
/// The source at the other end of a connection; nothing when it has ended.
std::optional<Source> source_of(int connection);
/// The source of connections that would come from "tcp://10.0.0.1:9001"; nothing for a name.
std::optional<Source> source_of_endpoint(const std::string& endpoint);

/// The attempts to connect that are dropped.
struct DropRule {
  bool strangers = true;       ///< sources that are not in `others` get in
  std::vector<Source> others;  ///< sources that are treated the other way, sorted
  bool operator==(const DropRule&) const = default;
};

class ConnectionLimiter {
 public:
  using Time = Deadline::Clock::time_point;

  struct Limits {
    std::size_t strangers = 512;       ///< most connections without a proof at once
    std::size_t each_peer = 8;         ///< most beside them, from each source of peers
    std::size_t source_arrivals = 50;  ///< most arrivals in a window from one source
    /// Most arrivals in a window from all sources without peers.
    std::size_t stranger_arrivals = 100;
    /// Most sources of peers to remember, as the kernel's rules are short.
    std::size_t sources = 1500;
  };
  static constexpr std::chrono::milliseconds kWindow{100};

  explicit ConnectionLimiter(const Limits& limits) : limits_(limits) {}

  /// Sources of the addresses that the list of peers has.
  void expect(std::set<Source> listed);
  /// A connection is there; a number that is reused is another connection.
  void arrived(int connection, const std::optional<Source>& source, Time now);
  /// The connection's holder has a listed key.
  void proved(int connection, std::string_view key);
  void ended(int connection);

  /// The connections that have to go; each is named once, and counted no more.
  std::vector<int> crowded();
  /// The attempts that the kernel is to drop until the next change or window.
  DropRule rule(Time now);
  /// The time when the rule changes by itself; nothing while all get in.
  std::optional<Time> next_change() const;

  /// Connections without a proof.
  std::size_t waiting() const { return waiting_; }
  /// How often a connection was named by crowded().
  std::uint64_t cut() const { return cut_; }
  /// Connections that ended otherwise, without a proof.
  std::uint64_t left() const { return left_; }
  const Limits& limits() const { return limits_; }

 private:
  struct Visitor {
    Source source;
    std::uint64_t number = 0;  ///< number of the arrival, ascending
  };
  using Queue = std::map<std::uint64_t, int>;  ///< connections by arrival, the oldest first

  bool of_peer(const Source& source) const {
    return listed_.contains(source) || seen_.contains(source);
  }
  void begin_window(Time now);
  void forget(int connection);
  std::size_t counted(const Source& source, const Queue& queue) const;

  const Limits limits_;
  std::set<Source> listed_;
  std::map<std::string, Source> by_key_;  ///< latest source of each listed key
  std::set<Source> seen_;                 ///< the sources in by_key_
  std::map<int, Visitor> visitors_;       ///< connections without a proof
  std::map<Source, Queue> queues_;        ///< visitors of each source
  std::size_t waiting_ = 0;
  std::uint64_t arrivals_ = 0;
  std::uint64_t cut_ = 0;
  std::uint64_t left_ = 0;

  Time window_{};
  std::map<Source, std::size_t> lately_;  ///< arrivals in this window, by source
  std::size_t strangers_lately_ = 0;
};

}  // namespace sotto::internal
