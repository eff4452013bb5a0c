// `--compressor auto:BYTES`: the compressor that fits a message of this many bytes best, by what a
// short run of one node shows of the updates (compress/compressor_budget.h).
//
// The run is node 0's, from the job's own start and seed. Every process of a job finds the same on
// one kind of processor, where gradients have equal bits; what node 0 found is used
// (agreed_compressor.h).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include <sotto/compress/compressor_budget.h>
#include <sotto/trainers/optimizer.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto::study {

/// The bytes of "auto:BYTES"; none for any other specification. Throws Error (field `compressor`)
/// for a figure that is no positive whole number.
std::optional<std::size_t> compressor_budget(std::string_view spec);

/// Chooses for a job with these options, whose compressor says "auto:BYTES". `task` is node 0's,
/// `start` the initial parameters. Takes 50 steps without exchanges first, and then looks at 4
/// movements of the model, each of as many steps as lie between exchanges, 50 at most. Throws Error
/// where the algorithm takes no compressor by tensor, where a privacy budget is to be kept, which
/// the choice does not count, and where nothing fits.
BudgetedCompressor choose_compressor(const OptimizerOptions& options, Task& task,
                                     std::span<const float> start);

}  // namespace sotto::study
