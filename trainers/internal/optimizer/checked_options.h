// What an optimizer's options must be before anything is built of them, and which node this is
// where they leave that to the launcher. Thread safety: pure functions, but for the launcher's
// variables and what the accelerator still has to do.
#pragma once

#include <span>
#include <string_view>

#include <sotto/trainers/optimizer_options.h>

namespace sotto::internal {

/// The options with nodes, rank and the place where the nodes meet, by default the launcher's.
/// Throws Error for settings of the run, not of an algorithm, that cannot be.
OptimizerOptions with_place(OptimizerOptions options);

/// Throws Error, with the field `what`, unless `values` lie where the accelerator of these options
/// works, if there is one.
void require_reached(const OptimizerOptions& options, std::span<const float> values,
                     std::string_view what);

/// Waits until the accelerator, if there is one, has written the parameters. Throws Error where
/// they lie elsewhere, and for settings that it cannot serve.
void check_accelerator(const OptimizerOptions& options, std::span<const float> parameters);

}  // namespace sotto::internal
