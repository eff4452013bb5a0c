// Checks of the settings of `sotto train` before any data are read. They look whether files exist,
// but open none.
#pragma once

#include <sotto/study/train/train_options.h>

namespace sotto::study {

/// Throws Error for a setting that the others leave without effect.
void check_options(const TrainOptions& options);

/// The rounds of a run, as asked for or by default; `per_epoch` of them pass over the data once.
/// Throws Error for none, and for more than 10^15.
Round count_rounds(const TrainOptions& options, Round per_epoch);

}  // namespace sotto::study
