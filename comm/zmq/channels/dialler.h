// A site's own way to a peer: which keys it expects where, and when it tries.
//
// A peer may have several addresses, each with several hosts behind it, and several keys. They are
// tried in turn, with pauses that grow once all of them have failed. An attempt begins anew, after
// a time that grows too, while no process takes it: a crowded host drops attempts without a word.
//
// Thread safety: none; the caller locks. `work` and what touches the connection are called from the
// thread that works. Ownership: its connection; options and context must outlive it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <zmq.hpp>

#include <sotto/comm/channels.h>

#include "../socket/listener.h"
#include "../socket/peer_connection.h"
#include "lookup.h"

namespace sotto::internal {

/// Time for a few messages to and fro, if the timeout is shorter.
inline constexpr std::chrono::milliseconds kHandshake{2000};

/// Why an attempt failed.
struct DialFailure {
  ChannelTrouble trouble;
  std::string reason;
};

class Dialler {
 public:
  using Time = Deadline::Clock::time_point;
  /// The phase of the way to the peer.
  enum class Phase {
    waiting,     ///< the next attempt is not due yet
    looking_up,  ///< the hosts of an address are looked up
    dialling,    ///< a host is to take the connection and prove its key
    open,        ///< the connection is there
  };

  Dialler(const ChannelOptions& options, zmq::context_t& context)
      : options_(options), context_(context) {}

  /// Takes HOST:PORT of the peer. True when these differ from those before.
  bool use_addresses(const std::vector<std::string>& addresses);
  /// The keys that it may prove; none: it is not listed.
  void use_keys(std::vector<PublicKey> keys);
  /// Forgets a lookup for a peer that was another one.
  void forget_lookup();

  bool has_addresses() const { return !addresses_.empty(); }
  const std::vector<PublicKey>& keys() const { return keys_; }
  /// Whether the peer may prove this key, as text.
  bool has_key(std::string_view key) const;
  /// Sources of the addresses that were found for the peer so far.
  std::set<Source> sources() const;
  /// Counts the changes of sources().
  std::uint64_t sources_version() const { return sources_version_; }

  Phase phase() const { return phase_; }
  bool open() const { return phase_ == Phase::open; }
  /// Null while none is being opened, or open.
  PeerConnection* connection() const { return connection_.get(); }
  /// The key that the peer is to prove on it, as text.
  const std::string& key() const { return dialled_key_; }

  /// Begins an attempt, if one is due, or looks at the connection that there is. One that fails is
  /// dropped, and the next attempt is planned.
  std::optional<DialFailure> work(Time now);
  /// Why the connection is broken; none while it is not. There must be one.
  std::optional<DialFailure> broken();
  /// Drops the connection; messages that it took are still sent, for at most this long.
  void abandon(int linger_ms);
  /// The next attempt comes soon: the last connection was of use, or the peer is there.
  void try_soon(Time now);
  /// The peer has been heard: no need to be patient with it.
  void hasten(Time now);
  /// The channel is up: the next pauses are short again.
  void succeeded() { pause_ = kFirstPause; }
  /// Plans the next attempt: after a pause that grows, unless there is another way to try.
  void try_later(Time now);

 private:
  /// First pause between two attempts; it doubles from then on.
  static constexpr std::chrono::milliseconds kFirstPause{50};

  std::optional<DialFailure> begin(Time now);
  std::optional<DialFailure> look(Time now);
  std::optional<DialFailure> dial(const std::string& endpoint, Time now);
  /// Begins or goes on with the lookup of the next address.
  std::optional<DialFailure> find_endpoints(Time now);
  void note_sources(const std::string& address, const std::vector<std::string>& endpoints);
  /// The attempt is over; the next one comes after a pause, unless there is another way to try.
  DialFailure failed(Time now, ChannelTrouble trouble, std::string reason);

  const ChannelOptions& options_;
  zmq::context_t& context_;
  Phase phase_ = Phase::waiting;

  std::vector<std::string> addresses_;  ///< the peer's addresses, HOST:PORT
  std::size_t next_address_ = 0;
  std::vector<PublicKey> keys_;
  std::size_t next_key_ = 0;  ///< index of the key that is expected at the next attempt
  std::optional<Lookup> lookup_;
  Time lookup_since_{};
  /// Endpoints of the address that was looked up last, yet to be tried.
  std::deque<std::string> endpoints_;
  std::map<std::string, std::set<Source>> sources_;  ///< sources found, by address
  std::uint64_t sources_version_ = 0;

  std::unique_ptr<PeerConnection> connection_;
  std::string dialled_;  ///< endpoint of the connection
  std::string dialled_key_;
  Time dialled_since_{};
  /// Longest time for which the next attempt waits for a process.
  Deadline::Clock::duration dial_time_{};
  std::chrono::milliseconds pause_{0};
  Time next_attempt_{};
};

}  // namespace sotto::internal
