#include <sotto/sites/core/mixing.h>

#include <fmt/format.h>

namespace sotto::sites {

Status take_step(const Ops& ops, StepRule& rule, Round step, std::span<const float> x,
                 std::span<const float> gradient, std::span<float> next) {
  if (Status status = require_finite(ops, gradient, "gradient"); !status) {
    return status;
  }
  if (Status status = rule.direction(step, x, gradient, next); !status) {
    return status;
  }
  ops.subtract(x, next, next);
  return require_finite(ops, next, "updated model");
}

Status require_finite(const Ops& ops, std::span<const float> values, std::string_view what) {
  const NonFinite bad = ops.count_non_finite(values);
  if (bad.count == 0) {
    return {};
  }
  return {
      Fault::non_finite,
      fmt::format("the {} has {} elements of {} that are not finite, the first is number {}, {}",
                  what, bad.count, values.size(), bad.first, values[bad.first])};
}

}  // namespace sotto::sites
