// Checks of the settings of `sotto train` before any data are read. They look whether files exist,
// but open none.
#pragma once

#include <sotto/study/train/train_options.h>

namespace sotto::study {

/// Throws Error for a setting that the others leave without effect.
void check_options(const TrainOptions& options);

/// The exchanges in which so many rounds end, one every communication interval, and the last one
/// perhaps earlier.
inline Round exchanges_in(Round rounds, const TrainOptions& options) {
  return (rounds + options.communication_interval - 1) / options.communication_interval;
}

/// The rounds of a run, as asked for or by default; `per_epoch` of them pass over the data once.
/// Throws Error for none, and for more than 10^15.
Round count_rounds(const TrainOptions& options, Round per_epoch);

}  // namespace sotto::study
