// x_i^½ = x_i − d, the model after a node's own step, of an algorithm that mixes it afterwards: two
// summands that are not written out, or a vector, where the caller reads it before it is mixed
// (Algorithm::step_ahead).
//
// A building block of the algorithms, not for users. A view, of what stays until the round is over;
// pieces that do not overlap may be asked for by several threads.
#pragma once

#include <cstddef>
#include <span>

#include <sotto/kernels/combination.h>
#include <sotto/optim/step_rule.h>

namespace sotto {

class HalfStep {
 public:
  HalfStep() = default;
  /// x − d, for vectors of equal length; `room`, empty or as long, is where it is written
  /// when a caller needs it whole.
  HalfStep(std::span<const float> x, const Direction& d, std::span<float> room = {})
      : x_(x), d_(d), room_(room) {}

  /// Writes `count` elements from `first` on, where there is room for them.
  void write(const Ops& ops, std::size_t first, std::size_t count) const {
    if (!room_.empty()) {
      ops.combine({{1, x_.subspan(first, count)}, {-d_.scale, d_.values.subspan(first, count)}},
                  room_.subspan(first, count));
    }
  }
  /// Adds these elements to `sum`, as its first summands; where there is room they are written.
  void add_to(Combination& sum, std::size_t first, std::size_t count) const {
    if (room_.empty()) {
      sum.add(1, x_.subspan(first, count)).add(-d_.scale, d_.values.subspan(first, count));
    } else {
      sum.add(1, room_.subspan(first, count));
    }
  }

 private:
  std::span<const float> x_;
  Direction d_;
  std::span<float> room_;
};

}  // namespace sotto
