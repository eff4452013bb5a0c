// What the nodes of a run do with their models outside the rounds: all start from values of node
// 0's, all take the mean of their models, and a node that is out of data goes along with the others
// until all are.
//
// Faults end the run (run_outcome.h). One thread at a time. Whatever it is given must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/trainers/meetings/model_average.h>
#include <sotto/trainers/optimizer_options.h>

#include "whole_model.h"

namespace sotto::internal {

class RunAgreement;
class RunOutcome;

/// What meetings ask of the rounds around them; a fault of one has ended the run already.
struct RoundHandlers {
  /// Meets the other nodes, unless that was done.
  std::function<Status()> connect;
  /// Waits until no exchange is under way.
  std::function<Status()> drain;
  /// Takes this gradient for a round; Fault::ended where all nodes end before it.
  std::function<Status(std::span<const float>)> step;
  /// The number of rounds that are done.
  std::function<Round()> done;
};

class ModelMeetings {
 public:
  ModelMeetings(const OptimizerOptions& options, const WholeModel& model, RunAgreement& agreement,
                RunOutcome& outcome, RoundHandlers rounds);
  ModelMeetings(const ModelMeetings&) = delete;
  ModelMeetings& operator=(const ModelMeetings&) = delete;

  // Each of these is called by all nodes, in one order.

  /// Replaces `values` by node 0's.
  Status take_from_node_0(std::span<float> values);
  /// The mean of all models, in `mean`, and the consensus distance. Throws Error for a wrong
  /// length.
  Result<double> mean(std::span<float> mean);
  /// Goes along for as long as options.join says, and drains. Then the mean of all models, in
  /// `mean` unless that is empty. Throws Error for a wrong length.
  Result<double> come_to_end(std::span<float> mean);
  /// Takes tensors that lie at other nodes (PlacedModel) into this node's model, as they are after
  /// the same round at all nodes; nothing where there are none. To be called when drained.
  Status bring_together();
  /// All nodes have ended, and have read what they met for: removes it.
  void clean_up();

  /// The consensus distance after this round, if that was the last at which it was found.
  std::optional<double> distance(Round done) const;
  /// The average of all models, for a run that evaluates it.
  ModelAverage& average() { return average_; }

 private:
  struct Mean {
    Round round = 0;
    double consensus_distance = 0;
  };

  /// The next meeting for the mean of all models, in `mean` if this node wants it.
  Result<double> meet(std::span<float> mean);
  /// The mean of all nodes' `values`, once all are on the way to this meeting.
  Result<double> mean_of(std::span<const float> values, std::span<float> mean);
  /// All nodes have read the mean that was taken last: removes it.
  void forget_mean();
  /// All nodes' own tensors by rank, of which `mine` are this one's.
  Result<std::vector<std::byte>> exchange_own(std::span<const std::byte> mine);
  /// Goes along, out of data, with nodes that have some.
  Status outlast_data();

  const WholeModel& model_;
  RunAgreement& agreement_;
  RunOutcome& outcome_;
  const RoundHandlers rounds_;
  const Rank rank_;
  const int nodes_;
  const Join join_;
  ModelAverage average_;
  std::optional<Mean> mean_;                         ///< the mean that was taken last
  std::uint64_t means_ = 0;                          ///< number of means taken
  const std::shared_ptr<const PlacedModel> placed_;  ///< null: there are no such tensors
  std::uint64_t gatherings_ = 0;                     ///< number of calls of bring_together
  std::uint64_t gifts_ = 0;                          ///< number of calls of take_from_node_0
};

}  // namespace sotto::internal
