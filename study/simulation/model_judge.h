// Judges the models of a simulated run's nodes as they come to the end of a round: their average,
// and in the end the nodes' own, which differ from it.
//
// Not thread-safe. The plan must outlive it.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/study/simulation/model_spread.h>
#include <sotto/study/simulation/simulation_result.h>
#include <sotto/study/train/train_plan.h>
#include <sotto/trainers/result.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto::study {

class ModelJudge {
 public:
  /// `by_worst`: points of the history have the worst of the nodes' own models in place of the
  /// average.
  ModelJudge(const TrainPlan& plan, bool by_worst);

  /// Values of a model.
  std::size_t dimension() const { return task_->dimension(); }

  /// Adds to `spread` the model that a node has at the end of a round, unless the node lies.
  void count(std::size_t node, std::span<const float> model, ModelSpread& spread) const;
  /// Whether the end of this round is judged by nodes' own models, too: by their quality, or since
  /// each has tensors that others lack (PlacedModel).
  bool judges_own(Round done) const;
  /// Fills loss, quality and consensus distance of `point`, whose round is set, from the models
  /// that were counted, and, where it judges nodes' own, from these, by rank: an empty one has not
  /// come there.
  void judge(const ModelSpread& spread, std::span<const std::span<const float>> models,
             HistoryPoint& point);

  /// How good the average was that was judged last.
  const Evaluation& mean() const { return mean_; }
  /// How good the nodes' own models are in the end; none: the run has not come there.
  const std::optional<NodeQuality>& own() const { return own_; }

 private:
  /// `judge` for models that are whole: that have other nodes' tensors, too (PlacedModel).
  void judge_whole(const ModelSpread& spread, std::span<const std::span<const float>> models,
                   HistoryPoint& point);
  struct Own {
    double worst_loss = -std::numeric_limits<double>::infinity();
    double worst_quality = std::numeric_limits<double>::infinity();
    double mean_quality = 0;
    std::size_t nodes = 0;
  };
  bool lies(std::size_t node) const;
  /// The models that are there, of nodes that do not lie.
  std::vector<std::span<const float>> of_honest(
      std::span<const std::span<const float>> models) const;
  /// Evaluates these; of many nodes' some, evenly spread.
  Own judge_own(std::span<const std::span<const float>> present);

  const TrainPlan& plan_;
  const bool by_worst_;
  /// A task of its own: a task belongs to one thread, and node 0's may be taking a gradient
  /// meanwhile.
  std::unique_ptr<Task> task_;
  Evaluation mean_{.loss = std::numeric_limits<double>::quiet_NaN()};
  std::optional<NodeQuality> own_;
};

}  // namespace sotto::study
