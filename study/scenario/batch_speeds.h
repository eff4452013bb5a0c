// Batches by speed (--batch-share speed) where a scenario says how fast nodes are. Pure functions;
// thread-safe.
#pragma once

#include <vector>

#include <sotto/sim/simulator_options.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/train/run_spec.h>
#include <sotto/trainers/tasks/task_registry.h>

namespace sotto::study {

/// How fast the nodes compute, by rank: 1 over the mean time of a gradient, as a part of the
/// fastest's. Throws Error where some gradients take no time.
std::vector<double> batch_speeds(const Scenario& scenario);

/// The settings of a scenario's run, with the speeds of its nodes where a batch goes by speed.
/// Throws Error for a value that is none.
TrainOptions options_of(const Scenario& scenario, const RunSpec& run);

/// The nodes' specifications where each takes its part of a step's examples: gradients take time in
/// proportion to it.
std::vector<NodeSpec> shared_node_specs(const Scenario& scenario, const TaskOptions& task);

}  // namespace sotto::study
