// The frames that the nodes of a job exchange, round by round, as the planner knows them. Pure
// functions; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include <sotto/base/exchange.h>
#include <sotto/base/ids.h>
#include <sotto/optim/streaming.h>
#include <sotto/topology/node_groups.h>

namespace sotto::study {

/// A frame from one node to another.
struct PlannedFrame {
  Rank from = 0;
  Rank to = 0;
  std::uint64_t bytes = 0;
  bool encoded = true;         ///< false: the same frame as the one before it, for another peer
  std::uint64_t elements = 0;  ///< parameters that it encodes
  std::uint32_t buckets = 1;   ///< buckets for which it stands, handled one by one
  ExchangeTag tag = {};        ///< tag of the exchange, of its first bucket
};

/// The frames that all nodes exchange at one time.
using PlannedExchange = std::vector<PlannedFrame>;

/// The exchanges of all nodes in a round.
struct PlannedRound {
  std::vector<PlannedExchange> before;  ///< posted at its start, one after another
  std::vector<PlannedExchange> after;   ///< posted once the gradient is there
  bool hides = false;                   ///< those behind the next gradient
  bool waits = true;  ///< whether it waits for what is under way; false: a local step
};

/// The rounds of a job: for a while those of its beginning, in turn, then the steady ones.
template <typename Kind>
struct RoundsOf {
  Round beginning_rounds = 0;
  std::vector<Kind> beginning = {};
  std::vector<Kind> steady = {};

  /// The round of this number, counted from 0.
  const Kind& round(Round number) const {
    return number < beginning_rounds ? beginning[number % beginning.size()]
                                     : steady[(number - beginning_rounds) % steady.size()];
  }
};
/// All rounds of a job, as its nodes exchange frames in them.
using PlannedJob = RoundsOf<PlannedRound>;

/// The job with `interval` rounds from one exchange to the next, as LocalSteps has it: what is
/// posted before the gradient hides behind all of them, what is posted after it behind the next
/// ones. With `streaming`, what is posted after it goes in fragments, as StreamedSteps has it.
PlannedJob with_local_steps(const PlannedJob& job, Round interval, const Streaming& streaming = {});

/// As with_local_steps, for a job in groups: members exchange in each round, and groups only in the
/// last one of an interval. The first and the last exchange behind a gradient are the members'.
PlannedJob with_local_steps_of_groups(const PlannedJob& job, Round interval);

/// Bytes that a node sends in a round, in the mean over nodes and rounds.
double bytes_per_round(const PlannedJob& job, int nodes, Round rounds);
/// Bytes that a node sends to members of its own group, in the same mean.
double bytes_per_round_within(const PlannedJob& job, const NodeGroups& groups, Round rounds);

/// `rounds`, or fewer, three at least, where a job's messages are so many that its time a round is
/// to be taken from its first rounds.
Round affordable_rounds(const PlannedJob& job, Round rounds);

}  // namespace sotto::study
