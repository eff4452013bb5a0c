// One node of an all-reduce whose nodes come and go that trains on a task: the loop around an
// ElasticOptimizer, until the run's steps are over or it is told to stop (docs/epochs.md).
#pragma once

#include <span>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/sites/elastic/elastic_optimizer.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto {

/// Runs the node. `parameters` are the initial model, and then the run's; evaluates after every
/// `eval_every` steps, 0: only at the end. `listener` is called as by ElasticOptimizer, whose
/// errors and faults are this function's.
Result<SiteResult> run_elastic(const ElasticOptions& options, Task& task,
                               std::span<float> parameters, Round eval_every,
                               const SiteListener& listener);

}  // namespace sotto
