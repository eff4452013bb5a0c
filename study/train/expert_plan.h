// Where the experts of a run's model lie, or the parts of its graph, from the settings of `sotto
// train`. Pure functions.
#pragma once

#include <memory>

#include <sotto/study/train/train_options.h>
#include <sotto/trainers/placed_model.h>
#include <sotto/trainers/tasks/experts_at_nodes.h>
#include <sotto/trainers/tasks/task_registry.h>

namespace sotto::study {

/// How rows go to experts, where these lie at nodes.
ExpertsAtNodes expert_settings(const TrainOptions& o);

/// The tasks' model with its experts, or the parts of its graph, at nodes; null: all nodes have
/// all. Throws Error for what is refused, and for settings of experts that would do nothing.
std::shared_ptr<const PlacedModel> placed_model(const TrainOptions& o,
                                                std::shared_ptr<const TaskFactory> tasks);

}  // namespace sotto::study
