// --compressor auto:BYTES in a launched job: node 0 chooses, and tells the others before the run.
// Nodes with other processors might choose otherwise. One call at a time.
#pragma once

#include <sotto/base/status.h>
#include <sotto/study/train/train_plan.h>

namespace sotto::study {

/// The plan with node 0's choice, which all learn through the store. A plan that asks for nothing
/// of the kind stays as it is. Throws Error as make_train_plan does.
Result<TrainPlan> with_agreed_compressor(TrainPlan plan);

}  // namespace sotto::study
