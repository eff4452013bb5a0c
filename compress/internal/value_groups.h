// How the values that a sparse message keeps are cut into groups with levels of their own, and
// where the packed codes of each group stand. A plain value; thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>

#include <sotto/kernels/ops.h>

namespace sotto::internal {

/// ⌊(n + 1024) / 2048⌋ groups of n values, at least one, with lengths that differ by one at most:
/// no short group is left over. Group g begins at value ⌊g n / groups⌋.
class ValueGroups {
 public:
  /// The longest group that there can be.
  static constexpr std::size_t kLongest = 3072;

  ValueGroups(std::size_t values, int bits)
      : values_(values),
        count_(values == 0 ? 0 : std::max<std::size_t>(1, (values + kUsual / 2) / kUsual)),
        bits_(bits) {}

  std::size_t count() const { return count_; }
  std::size_t begin(std::size_t group) const { return values_ * group / count_; }
  std::size_t end(std::size_t group) const { return begin(group + 1); }
  std::size_t size(std::size_t group) const { return end(group) - begin(group); }
  std::size_t longest() const { return count_ == 0 ? 0 : shorter() + (longer_ones() > 0 ? 1 : 0); }
  /// The first group that begins at `value` or after it.
  std::size_t from(std::size_t value) const {
    return values_ == 0 ? 0 : (value * count_ + values_ - 1) / values_;
  }

  /// The codes of each group start on a byte of their own.
  std::size_t code_bytes(std::size_t group) const { return packed_bytes(size(group), bits_); }
  std::size_t code_offset(std::size_t group) const {
    return code_bytes_of(group, begin(group) - group * shorter());
  }
  std::size_t total_code_bytes() const {
    return count_ == 0 ? 0 : code_bytes_of(count_, longer_ones());
  }

 private:
  static constexpr std::size_t kUsual = 2048;

  std::size_t shorter() const { return values_ / count_; }
  std::size_t longer_ones() const { return values_ % count_; }
  std::size_t code_bytes_of(std::size_t groups, std::size_t longer) const {
    return (groups - longer) * packed_bytes(shorter(), bits_) +
           longer * packed_bytes(shorter() + 1, bits_);
  }

  std::size_t values_;
  std::size_t count_;
  int bits_;
};

}  // namespace sotto::internal
