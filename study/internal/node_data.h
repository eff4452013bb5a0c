// What the amounts of data of a run's nodes come to: what each counts for, and for how many rounds
// its data last. All nodes know the amounts of all, as they deal out the data alike.
#pragma once

#include <memory>
#include <vector>

#include <sotto/study/train/train_options.h>
#include <sotto/trainers/tasks/task.h>
#include <sotto/trainers/tasks/task_registry.h>

namespace sotto::study {

/// The weight of each node by --weight or its batch, by rank; empty: all count alike. `launched`:
/// this process is one node of a launched job. Throws Error where the setting says nothing.
std::vector<double> weights_of_nodes(const TrainOptions& options, const TaskFactory& tasks,
                                     bool launched);

/// With --join: for how many rounds each node has data, by rank, where all nodes together have them
/// for `rounds`. Empty without it: data are gone through again and again. Throws Error where that
/// cannot be said.
std::vector<Round> rounds_of_nodes(const TrainOptions& options, const TaskFactory& tasks,
                                   Round rounds);

/// The task of a node that has data for `rounds` rounds: from then on its gradients are zero.
std::unique_ptr<Task> make_ending_task(std::unique_ptr<Task> task, Round rounds);

}  // namespace sotto::study
