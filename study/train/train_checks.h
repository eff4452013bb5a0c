// Checks of the settings of `sotto train` before any data are read. They look whether files exist,
// but open none.
#pragma once

#include <sotto/study/train/train_options.h>

namespace sotto::study {

/// Throws Error for a setting that the others leave without effect.
void check_options(const TrainOptions& options);

}  // namespace sotto::study
