#include <sotto/sites/core/mixing.h>

#include <fmt/format.h>

namespace sotto::sites {

Status take_step(const MixingSetup& setup, PullBound& bound, Round step,
                 std::span<const float> gradient, std::span<float> room) {
  const Ops& ops = *setup.ops;
  if (Status status = require_finite(ops, gradient, "gradient"); !status.ok()) {
    return status;
  }
  if (Status status = setup.step_rule->direction(step, setup.parameters, gradient, room);
      !status.ok()) {
    return status;
  }
  ops.subtract(setup.parameters, room, room);
  if (Status status = require_finite(ops, room, "updated model"); !status.ok()) {
    return status;
  }
  bound.stepping(setup.parameters);
  ops.copy(room, setup.parameters);
  return {};
}

Status stretch_steps(const MixingSetup& setup, const PullBound& bound, float factor,
                     std::span<float> room) {
  const Ops& ops = *setup.ops;
  ops.subtract(setup.parameters, bound.from(), room);
  ops.scale(factor, room);
  ops.axpy(1, bound.from(), room);
  if (Status status = require_finite(ops, room, "model after steps that count more");
      !status.ok()) {
    return status;
  }
  ops.copy(room, setup.parameters);
  return {};
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
