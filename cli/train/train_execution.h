// Runs a planned training: over threads, over local processes, or as one node of a launched job.
// One call at a time.
#pragma once

#include <sotto/base/status.h>
#include <sotto/console/output.h>
#include <sotto/study/train/train_plan.h>

#include "train_report.h"

namespace sotto::cli {

/// `observer` watches the run, and is told when it has ended, also by an exception; `report` says
/// in the end what came out. Returns node 0's result as the JSON of `sotto train`; null on the
/// other nodes of a launched job. Ctrl-C ends the run with a fault. Throws Error for a request that
/// is refused only now, and what a task or an observer throws.
Result<Json> execute(const study::TrainPlan& plan, TrainReport& report, Observer& observer);

}  // namespace sotto::cli
