// What nodes compute besides gradients and one decoding of each frame, where that takes time:
// Muon's products of matrices, those of low-rank factors, and a second decoding of what is clipped
// to the median of its lengths. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/sim/simulator_options.h>
#include <sotto/study/train/train_plan.h>

namespace sotto::study {

/// Work of a node, in multiply-adds or as a part of what its gradient takes.
struct StepWork {
  double step = 0;      ///< work of each step
  double exchange = 0;  ///< work of each exchange, besides encoding

  /// The work of a round, with so many rounds from one exchange to the next.
  double of_round(Round interval) const { return step + exchange / static_cast<double>(interval); }
};

/// Multiply-adds in products of matrices of the plan's step rule and of its algorithm, for a node
/// with `degree` neighbours.
StepWork multiply_adds_of(const TrainPlan& plan, const ParameterLayout& layout, int degree);

/// Their operations as a part of those of the node's gradient; none where there are some and the
/// gradient's cannot be counted (score.h).
std::optional<StepWork> step_work(const TrainPlan& plan, const ParameterLayout& layout, int degree);
/// Counts for nodes with as many neighbours as the graph of the plan gives any.
std::optional<StepWork> step_work(const TrainPlan& plan, const ParameterLayout& layout);

/// Has the nodes' gradients take that part longer.
void add_step_work(double work, std::vector<NodeSpec>& nodes);

/// Has the nodes decode what comes in the first phase of a round as often as the plan's algorithm
/// does.
void add_second_decoding(const TrainPlan& plan, std::vector<NodeSpec>& nodes);

}  // namespace sotto::study
