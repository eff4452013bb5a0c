// Which compressor each tensor gets where a message may take only so many bytes: the one whose
// error is worth its bytes.
//
// A tensor whose values are large loses more by few bits than one whose values are small, and a
// long one costs more by many. Of the encodings allowed, each tensor gets the one for which the
// squared error ‖C(v) − v‖² of the whole vector, in the mean over samples of what will be sent, is
// least among all choices that fit (compress/bit_allocation.h).
//
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/parameter_layout.h>
#include <sotto/compress/compressor.h>

namespace sotto {

/// The compressors that a tensor may get unless the caller names others, from the fewest bits on.
std::span<const std::string> budget_encodings();

/// A compressor that fits into a budget.
struct BudgetedCompressor {
  std::string spec;       ///< for make_compressor with the same layout
  std::size_t bytes = 0;  ///< its longest encoding of the whole vector
  double relative_error = 0;  ///< √(Σ‖C(v) − v‖² / Σ‖v‖²) over the samples; 0 where all are zero
};

/// Chooses one of `encodings` for each tensor of `layout`, so that `vectors` encodings of the whole
/// vector take `most_bytes` at most together. `samples` are vectors like those that will be sent,
/// as long as the layout, finite, one at least. `need` is the form that the algorithm asks for
/// (make_compressor). Throws Error (field `compressor`) where even the shortest encodings do not
/// fit, and for names of tensors that no rule can be written for.
BudgetedCompressor compressor_within(std::size_t most_bytes,
                                     std::span<const std::vector<float>> samples,
                                     const ParameterLayout& layout,
                                     std::span<const std::string> encodings = budget_encodings(),
                                     ContractKind need = ContractKind::any,
                                     std::size_t vectors = 1);

}  // namespace sotto
