#include <sotto/sites/core/mixing/local_steps.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <sotto/sites/core/pieces.h>

namespace sotto::sites {

Result<Direction> direction_of(const MixingSetup& setup, Round step,
                               std::span<const float> gradient, std::span<float> room) {
  // A rule that keeps nothing need not be spared a gradient that is not finite.
  const bool stateless = setup.step_rule->stateless();
  Status bad = stateless ? Status() : require_finite(*setup.ops, gradient, "gradient");
  if (!bad.ok()) {
    return bad;
  }
  auto direction = setup.step_rule->direction_in(step, setup.parameters, gradient, room);
  if (!direction.ok() && stateless) {
    bad = require_finite(*setup.ops, gradient, "gradient");
  }
  return bad.ok() ? direction : bad;
}

Status take_step(const MixingSetup& setup, PullBound& bound, Round step,
                 std::span<const float> gradient, std::vector<float>& room) {
  const auto d = direction_of(setup, step, gradient, room);
  if (!d.ok()) {
    return d.status();
  }
  const Ops& ops = *setup.ops;
  const std::span<float> x = setup.parameters;
  std::vector<float> before(std::min(ops.piece(), x.size()));
  double moved = 0;
  const bool finite = by_piece(ops, x.size(), [&](std::size_t first, std::size_t count) {
    const auto now = x.subspan(first, count);
    const auto old = std::span(before).first(count);
    ops.copy(now, old);
    const bool good = ops.combine({{1, now}, {-d->scale, d->values.subspan(first, count)}}, now);
    moved += squared_distance(now, old);
    ops.copy(old, std::span(room).subspan(first, count));  // where the direction may have been
    return good;
  });
  if (!finite) {
    Status status = require_finite(ops, x, "updated model");
    ops.copy(room, x);
    return status;
  }
  bound.stepped_from(room, std::sqrt(moved));
  return {};
}

Status stretch_steps(const MixingSetup& setup, PullBound& bound, float factor,
                     std::span<float> room) {
  bound.stretched();
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
