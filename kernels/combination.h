// A linear combination (Ops::combine) whose summands come one by one, as those of a node's
// neighbours do.
//
// Views the summands and the operations until the sum is written. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <sotto/kernels/ops.h>

namespace sotto {

class Combination {
 public:
  /// A sum that `ops` write to `out`, which may be the first summand.
  Combination(const Ops& ops, std::span<float> out) : ops_(ops), out_(out) {}

  /// One summand more: a x, of the length of `out`.
  Combination& add(float a, std::span<const float> x) {
    if (count_ == summands_.size()) {
      write();
      summands_[0] = {1, out_};
      count_ = 1;
    }
    summands_[count_++] = {a, x};
    return *this;
  }

  /// Writes the sum. Says whether all of it is finite. Requires a summand.
  bool write() { return ops_.combine(std::span(summands_).first(count_), out_); }

 private:
  const Ops& ops_;
  std::span<float> out_;
  std::array<Summand, 8> summands_;
  std::size_t count_ = 0;
};

}  // namespace sotto
