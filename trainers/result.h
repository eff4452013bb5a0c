// The results of a training run. Plain values.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/compress/metered.h>
#include <sotto/optim/algorithm.h>
#include <sotto/optim/privacy/step_budget.h>
#include <sotto/trainers/driver.h>

namespace sotto {

struct Evaluation;  // tasks/task.h

/// The averaged model after `round` rounds.
struct HistoryPoint {
  Round round = 0;
  double time_s = 0;  ///< node 0's training time; the clock stands still during evaluations
  double loss = 0;
  double accuracy = std::numeric_limits<double>::quiet_NaN();  ///< NaN where the task has none
  /// R² of a regression, as in Evaluation.
  double r2 = std::numeric_limits<double>::quiet_NaN();
  /// RMSE of a regression, as in Evaluation.
  double rmse = std::numeric_limits<double>::quiet_NaN();
  double consensus_distance = 0;  ///< (1/n) Σ‖x_i − x̄‖²
  double bytes_per_node = 0;      ///< bytes sent so far, mean over nodes
};

/// Sets the point's loss, accuracy, R² and RMSE to those that were found.
void set_quality(HistoryPoint& point, const Evaluation& found);

/// The share of the test set that is right, or R² of a regression: 1 at best, and the larger the
/// better. NaN where the task has neither.
template <typename Found>
double quality_of(const Found& found) {
  return std::isnan(found.accuracy) ? found.r2 : found.accuracy;
}

/// Seconds, means over nodes; the rest of wall_s went to bookkeeping.
struct TimeSplit {
  double wall_s = 0;
  double compute_s = 0;    ///< time in gradients
  double algorithm_s = 0;  ///< time to compress, decode and mix (may run beside compute_s)
  double wait_s = 0;       ///< time waiting for peers
  double slowest_s = 0;    ///< wall_s of the node that took longest
};

/// The state of one node; sums from its first round on.
struct NodeStanding {
  Rank node = 0;
  Round round = 0;                   ///< rounds done
  std::vector<LinkTraffic> traffic;  ///< traffic to each peer
  DriverTimes times;
  double wall_s = 0;     ///< seconds in training
  double compute_s = 0;  ///< seconds in gradients
  AlgorithmCounters counters;
  std::optional<CompressionSample> compression;  ///< the last measurement
  std::optional<PrivacySpent> privacy;
};

/// Bytes sent over all links.
double sent_bytes(const NodeStanding& node);

/// The sums over all nodes that measured; nothing when none has.
std::optional<CompressionSample> compression_of(std::span<const NodeStanding> nodes);

/// Bytes that each node would send in `rounds` rounds of a ring all-reduce of the gradients, 32-bit
/// floats in whole vectors: 2 (n − 1)/n vectors a round (Patarasuk and Yuan 2009), without headers.
double allreduce_bytes(int nodes, std::size_t dimension, Round rounds);

/// The state of a site, or of a node of a run whose nodes come and go; none: it has no such thing.
struct SiteStanding {
  std::optional<double> mass{};           ///< the site's own mass ω
  std::optional<double> epsilon{};        ///< ε spent of its privacy budget
  std::optional<double> nodes_up{};       ///< nodes that are up, this one among them
  std::optional<double> epoch{};          ///< number of the epoch, in a run with one model
  std::optional<double> epoch_members{};  ///< members of that epoch
};

/// An evaluation, as observers see it.
struct RunEvaluation {
  HistoryPoint point;
  /// Standings sorted by node; empty unless observers of all nodes want them. In a loop of the
  /// caller's own those that node 0 has heard of, as they stood then.
  std::vector<NodeStanding> nodes{};
  /// `nodes` has all nodes, as they stand after this round.
  bool complete = false;
  /// This is a report on how the nodes stand, without an evaluation: point.loss is a NaN.
  bool report = false;
  /// The compression of all nodes, compression_of(nodes).
  std::optional<CompressionSample> compression{};
  /// allreduce_bytes at the rounds of `nodes`, mean over them; NaN where there is nothing to
  /// compare with.
  double allreduce_bytes = std::numeric_limits<double>::quiet_NaN();
  /// The state of a site. A site knows of itself alone, so `nodes` is then empty.
  std::optional<SiteStanding> site{};
};

/// The result of a run at its end.
struct RunResult {
  int nodes = 0;
  Round rounds = 0;
  std::size_t dimension = 0;
  std::vector<LinkTraffic> edges;  ///< sorted by (from, to)
  std::vector<HistoryPoint> history;
  HistoryPoint final;
  TimeSplit time;
  std::vector<std::string> parameters_sha256;  ///< SHA-256 of each node's raw little-endian floats
  AlgorithmCounters counters;                  ///< sums over nodes; most_stale: the largest
  /// The budget of the node that has spent most; unset when nothing was hidden.
  std::optional<PrivacySpent> privacy;
  Status dumped;  ///< reason why the final models could not be written where they were to be

  /// Sums over a node's edges, for each node.
  std::vector<std::uint64_t> bytes_sent_per_node() const;
  /// Frames that each node sent, as bytes_sent_per_node.
  std::vector<std::uint64_t> frames_sent_per_node() const;
};

}  // namespace sotto
