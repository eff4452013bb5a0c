// Channels between processes in virtual time, with the contract of comm/channels.h: between an up
// and its down messages arrive whole, in order, once; what is under way at a down is gone.
//
// A connection joins two processes, each of which has its end of it. An end closes when its process
// ends, when nothing was heard for the silence time-out, when a newer connection of the same peer
// takes its place, or when the process closes it; the other end hears of that one latency later, or
// by silence where the way is blocked. Heartbeats are not simulated one by one: an end is *quiet*
// from the moment on at which nothing could come to it.
//
// One thread at a time. Owns its connections; the queue is the caller's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/philox.h>
#include <sotto/sim/event_queue.h>
#include <sotto/sim/time.h>
#include <sotto/sites/faults/fault_plan.h>
#include <sotto/sites/faults/site_liveness.h>

#include "wire_event.h"

namespace sotto::sites {

inline constexpr WireId kNoWire = 0;

/// What a process is told by its channels.
struct ChannelNews {
  enum class Kind : std::uint8_t { up, message, down };
  Kind kind = Kind::down;
  Rank peer = -1;
  WireId connection = kNoWire;
  ProcessId from = 0;  ///< process at the other end
  std::vector<std::byte> message = {};
};

class Wires final : public Ways {
 public:
  /// Event kinds from here on are this object's.
  static constexpr std::uint32_t kFirstEvent = static_cast<std::uint32_t>(WireEvent::dial);

  using Tell = std::function<void(ProcessId, ChannelNews)>;

  /// `snapped` hears between whom a connection breaks that was to break later.
  using Snapped = std::function<void(Rank, Rank)>;

  Wires(const FaultPlan& plan, std::uint64_t seed, EventQueue& queue, Tell tell, Snapped snapped);

  // Processes; each number once.
  void begin(ProcessId process, Rank site, const std::vector<Rank>& listed);
  void end(ProcessId process, bool in_good_order);
  void stop(ProcessId process);
  void resume(ProcessId process);
  void relist(ProcessId process, const std::vector<Rank>& listed);
  /// A message on the connection that the process knows of; dropped when that is no more.
  void send(ProcessId process, WireId connection, std::span<const std::byte> message);
  /// The process closes its end, and hears of it; the peer is tried again after `pause`.
  void close(ProcessId process, WireId connection, SimTime pause);

  // Links.
  void block(Rank from, Rank to);
  void unblock(Rank from, Rank to);
  /// None: as planned.
  void set_link(Rank from, Rank to, std::optional<LinkSpec> link);
  /// The connection between the present processes breaks when `bytes` more have gone along it.
  /// False when there is none.
  bool reset(Rank a, Rank b, std::uint64_t bytes);
  bool open_both_ways(Rank a, Rank b) const override;
  bool slowed(Rank a, Rank b) const override;

  void handle(const Event& event);

 private:
  struct Coming {
    SimTime due = 0;
    std::vector<std::byte> message;
  };
  struct End {
    ProcessId process = 0;
    bool open = true;
    bool told = false;          ///< whether the end was told that it is up
    std::deque<Coming> coming;  ///< messages on the way to this end
    SimTime line_free = 0;      ///< time when the way to this end is free
    SimTime quiet_since = kNever;
    std::uint32_t quiet_version = 0;
  };
  struct Connection {
    std::array<End, 2> ends;
    std::optional<std::uint64_t> bytes_left;  ///< bytes until it breaks; unset: it does not
    bool snapped = false;                     ///< whether messages get lost from now on

    /// Which end is the process's.
    std::size_t end_of(ProcessId process) const { return ends[0].process == process ? 0 : 1; }
  };
  /// A process, as its channels see it.
  struct Caller {
    Rank site = 0;
    bool alive = false;
    bool stopped = false;
    std::vector<char> listed;        ///< by site
    std::vector<WireId> connection;  ///< by site
    std::vector<char> dialing;       ///< whether a try is due, by site
  };

  std::size_t way(Rank from, Rank to) const {
    return static_cast<std::size_t>(from) * sites_ + static_cast<std::size_t>(to);
  }
  LinkSpec link(Rank from, Rank to) const { return changed_[way(from, to)].value_or(link_); }
  SimTime latency(Rank from, Rank to) const { return link(from, to).latency; }
  SimTime transmission(std::size_t bytes, const LinkSpec& link) const;
  Rank site_of(const End& end) const { return processes_[end.process].site; }
  /// The connection of the process to a site; kNoWire: none.
  WireId& wire(ProcessId process, Rank peer) {
    return processes_[process].connection[static_cast<std::size_t>(peer)];
  }
  bool passes(const Connection& connection, std::size_t to) const;

  void redial(ProcessId process, Rank peer, SimTime pause);
  bool may_connect(ProcessId process, Rank peer) const;
  void on_dial(const Dialing& dialing);
  void on_connected(const Dialing& dialing);
  void on_up(const WireEnd& at);
  void on_arrive(const WireEnd& at);
  void on_fin(const WireEnd& at);
  void on_silence(const WireSilence& silence);
  void on_snap(WireId id);
  void close_end(WireId id, std::size_t which, SimTime pause, bool tell);
  void update_quiet(WireId id, std::size_t which);
  void retime(WireId id, std::size_t to);
  void break_now(WireId id);
  template <typename Act>
  void for_way(Rank from, Rank to, const Act& act);

  std::size_t sites_;
  LinkSpec link_;
  SimTime silence_;
  SimTime reconnect_;
  EventQueue& queue_;
  Tell tell_;
  Snapped snapped_;
  RandomStream random_;
  std::vector<Caller> processes_;
  std::vector<std::optional<ProcessId>> newest_;  ///< processes by site; empty: it had none
  std::vector<int> blocked_;                      ///< times that a way is blocked
  std::vector<std::optional<LinkSpec>> changed_;  ///< changed links by way
  std::map<WireId, Connection> connections_;
  WireId last_ = kNoWire;
};

}  // namespace sotto::sites
