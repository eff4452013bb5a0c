// A task with gradients that take at least the time that is drawn for them: a slow machine, tried
// on a fast one. It belongs to one node, as every task.
#pragma once

#include <memory>
#include <string>

#include <sotto/sim/compute_time.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto::study {

/// Parses --gradient-time. Throws Error that names the option.
ComputeTime parse_pace(const std::string& spec);

/// `task` with the pace that node `rank` has in a simulation of the same seed (sim/compute_time.h).
/// A gradient that takes longer by itself takes that long. Sleeps; results are the same.
std::unique_ptr<Task> make_paced_task(std::unique_ptr<Task> task, const ComputeTime& pace,
                                      std::uint64_t seed, Rank rank);

}  // namespace sotto::study
