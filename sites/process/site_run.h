// One site that trains on a task: the loop around a SiteOptimizer, until its rounds are over or it
// is told to stop (docs/sites.md, docs/operations.md).
#pragma once

#include <memory>
#include <span>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/sites/process/site_optimizer.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto {

/// Runs the site whose state is in `folder`. `parameters` are the initial model, and then
/// the site's; evaluates after every `eval_every` rounds, 0: only at the end. `listener` is called
/// as by SiteOptimizer, whose errors and faults are this function's; a gradient or a loss that is
/// not finite is one, too.
Result<SiteResult> run_site(const SiteOptions& options, std::unique_ptr<SiteFolder> folder,
                            Task& task, std::span<float> parameters, Round eval_every,
                            const SiteListener& listener);

}  // namespace sotto
