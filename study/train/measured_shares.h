// --batch-share speed: how fast the nodes of a launched job are, measured by each and told to all
// before the run. One call at a time.
#pragma once

#include <cstddef>
#include <span>

#include <sotto/base/status.h>
#include <sotto/study/train/train_plan.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto::study {

/// A gradient's examples a second, in the median of some gradients at `parameters` behind one that
/// is not counted. Later gradients are what they would have been.
double measure_speed(Task& task, std::size_t batch, std::span<const float> parameters);

/// The plan with shares of a batch by the nodes' speeds: each node measures its own, and all learn
/// them through the store. A plan that asks for nothing of the kind stays as it is. Throws Error as
/// make_train_plan does.
Result<TrainPlan> with_measured_shares(TrainPlan plan);

}  // namespace sotto::study
