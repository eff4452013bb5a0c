// What the settings of `sotto train` tell by themselves, before any data are read. Looks
// whether files are there, opens none.
#pragma once

#include <sotto/study/train_options.h>

namespace sotto::study {

/// Throws Error for a setting that the others leave without effect.
void check_options(const TrainOptions& options);

}  // namespace sotto::study
