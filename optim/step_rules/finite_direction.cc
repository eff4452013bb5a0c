#include <sotto/optim/step_rules/finite_direction.h>

#include <fmt/format.h>

namespace sotto {

Status finite_direction(std::span<const float> d, const Ops& ops) {
  const NonFinite bad = ops.count_non_finite(d);
  if (bad.count == 0) {
    return {};
  }
  return {Fault::non_finite,
          fmt::format("the direction has {} elements of {} that are not finite, the first is "
                      "number {}, {}; lower the learning rate, or look at the data",
                      bad.count, d.size(), bad.first, element(d, bad.first, ops))};
}

}  // namespace sotto
