// The values that a sparse message keeps, in few bits: a sign and the index of a magnitude, by
// levels that each group of them has of its own (coded_topk.h has the format).
//
// A plain value; thread-safe. Views the operations. Allocates nothing.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include <sotto/base/status.h>
#include <sotto/kernels/ops.h>

#include "spec.h"

namespace sotto::internal {

/// Bits of a value that travels as it is.
inline constexpr int kFloatBits = 32;

class CodedValues {
 public:
  /// Values of 1 … 8 bits.
  CodedValues(int bits, const Ops& ops) : bits_(bits), ops_(ops) {}

  /// Whether the levels are fitted; otherwise they are multiples of a step.
  bool fitted() const { return bits_ <= 4; }
  /// 2^(B−1), the magnitudes that a code can name.
  std::size_t levels() const { return std::size_t{1} << (bits_ - 1); }
  /// Floats that a group has beside its codes: its levels, or its step.
  std::size_t parameters() const { return fitted() ? levels() : 1; }

  /// The worst ‖v̂‖² / ‖v‖² of a group of `longest` values with levels that are a grid.
  double least_kept_by_grid(std::size_t longest) const;

  /// Codes a group, ValueGroups::kLongest values at most, all finite; `values` becomes what the
  /// codes stand for.
  void encode(std::span<float> values, std::span<std::byte> parameters,
              std::span<std::byte> codes) const;
  /// Whether a group of `count` values that came with a frame stands for finite values.
  Status judge(std::size_t group, std::span<const std::byte> parameters,
               std::span<const std::byte> codes, std::size_t count) const;
  /// The values of a judged group.
  void decode(std::span<const std::byte> parameters, std::span<const std::byte> codes,
              std::span<float> values) const;

 private:
  Grid units() const { return {.origin = 0, .step = 1, .bits = bits_}; }
  /// Replaces codes, as floats, by what they stand for.
  void look_up(std::span<const std::byte> parameters, std::span<float> codes) const;

  int bits_;
  const Ops& ops_;
};

/// The parameter `values`, 1 … 8 or kFloatBits, if it is given.
std::optional<int> take_value_bits(SpecReader& spec);

}  // namespace sotto::internal
