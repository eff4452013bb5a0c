// The parts of a step's gradient that a backward pass has given so far, and which parts may come.
// One thread at a time. Whatever it is given must outlive it.
#pragma once

#include <cstddef>

#include <sotto/base/parameter_layout.h>
#include <sotto/optim/exchange/gradient_parts.h>

#include "step_settings.h"

namespace sotto::internal {

class StepParts {
 public:
  StepParts(const ParameterLayout& layout, const StepSettings& settings)
      : layout_(layout), settings_(settings), parameters_(dimension_of(layout)) {}

  /// Whether no part has come.
  bool empty() const { return parts_.empty(); }
  /// Throws Error "gradient_part" unless these elements may be the next part. `taken`: this run
  /// takes gradients in parts.
  void require(std::size_t first, std::size_t elements, bool taken) const;
  /// Throws Error "gradient" unless all parts have come.
  void require_all() const { parts_.require_all(parameters_); }
  /// Throws Error "gradient" where a part has come.
  void require_none() const;
  /// The part has come.
  void add(std::size_t first, std::size_t elements) { parts_.add(first, elements); }
  /// The step is over.
  void clear() { parts_.clear(); }

 private:
  const ParameterLayout& layout_;
  const StepSettings& settings_;
  const std::size_t parameters_;
  GradientParts parts_;
};

}  // namespace sotto::internal
