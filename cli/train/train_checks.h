// What the settings of `sotto train` tell by themselves, before any data are read. Looks
// whether files are there, opens none.
#pragma once

#include <string>
#include <string_view>

#include "train_options.h"

namespace sotto::cli {

/// Whether nodes step by themselves between exchanges, or exchanges have a step rule of their own.
bool has_local_steps(const TrainOptions& options);

/// The step rule that the algorithm is built on, else sgd.
std::string needed_step_rule(std::string_view algorithm);

/// The step rule that is asked for, else the one that the algorithm is built on, else sgd. With
/// local steps the algorithm has its own in the outer rule.
std::string step_rule_name(const TrainOptions& options);

/// Throws Error for a name that is mistyped, and for a setting that the others leave without
/// effect.
void check_options(const TrainOptions& options);

}  // namespace sotto::cli
