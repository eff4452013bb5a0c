// The books of a simulation: where the nodes' time goes, how many rounds they have finished, all
// that happens, and the report that is made of that.
//
// One thread at a time. Views the state, which must outlive it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include <sotto/base/status.h>
#include <sotto/sim/simulation_report.h>

#include "round_counts.h"
#include "simulation_state.h"
#include "trace.h"

namespace sotto {

class RunAccounts {
 public:
  explicit RunAccounts(SimulationState& state) : state_(state), rounds_(state.nodes.size()) {}

  /// Books the time since the last call under what the node was doing.
  void account(Rank rank) {
    if (state_.at(rank).accounted != state_.now()) {
      book(rank);
    }
  }
  /// Notes what happens now, for the trace and its hook.
  void record(TraceEntry::Kind kind, Rank node, Rank peer = -1, std::uint64_t bytes = 0) {
    const TraceEntry entry{state_.now(), kind, node, peer, bytes};
    trace_.add(entry);
    if (state_.hooks.trace) {
      state_.hooks.trace(entry);
    }
  }
  /// An event was taken from the queue.
  void count_event() { ++events_; }
  /// A message has arrived.
  void count_message() { ++messages_; }
  /// A message between nodes in these rounds has arrived.
  void note_lead(Round ahead, Round behind) {
    largest_lead_ = std::max(largest_lead_, ahead > behind ? ahead - behind : 0);
  }

  /// A node that had finished `rounds` has finished one more.
  void finish_round(Round rounds) {
    rounds_.advance(rounds);
    tell_rounds_of_all();
  }
  /// A node that had finished `rounds` has ended.
  void end_node(Round rounds) {
    rounds_.remove(rounds);
    tell_rounds_of_all();
  }
  /// The fault by which a node has ended early.
  void note_fault(Rank rank, Status status) { faults_[rank] = std::move(status); }
  /// Number of nodes that have not ended.
  std::size_t nodes_left() const { return rounds_.nodes(); }
  /// Whether the hook that hears of rounds has ended the run.
  bool stopped() const { return stopped_; }

  /// The report of the run, which has ended; once. Frees the network and the transport: with very
  /// many nodes there would not be room for all of it at once.
  SimulationReport make_report();

 private:
  void book(Rank rank);
  /// Tells of the rounds that all nodes that are left have finished since the last call.
  void tell_rounds_of_all();
  /// What the node spends its time on at present.
  Phase phase_of(Rank rank) const;

  SimulationState& state_;
  TraceHash trace_;
  RoundCounts rounds_;
  std::map<Rank, Status> faults_;
  Round largest_lead_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t events_ = 0;
  bool stopped_ = false;
};

}  // namespace sotto
