#include <sotto/optim/node_stepper.h>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/optim/local_node.h>

namespace sotto {
namespace {

constexpr std::string_view kUpdated = "updated model";

}  // namespace

Vector NodeStepper::direction_room() const {
  return {node_.setup().directed ? 0 : node_.dimension(), node_.ops()};
}

Status NodeStepper::direction(std::span<const float> gradient, std::span<float> d) {
  check(gradient.size() == node_.dimension(), "a gradient has the dimension of the parameters");
  return direction_at(0, node_.x(), gradient, d);
}

Status NodeStepper::direction_at(std::size_t first, std::span<const float> at,
                                 std::span<const float> gradient, std::span<float> d) {
  if (Status status = begin_step(gradient); !status.ok()) {
    return status;
  }
  Status status = node_.step_rule().direction(node_.round(), at, gradient, d);
  if (status.ok()) {
    return status;
  }
  if (first > 0) {
    status = status.with_context(fmt::format("from parameter {} on", first));
  }
  const bool overwritten = gradient.data() == d.data();  // what was finite
  return overwritten ? overflow_ = node_.here(status) : leave_step_rule(status, gradient);
}

Status NodeStepper::enter_step_rule(std::span<const float> gradient) {
  if (!overflow_.ok()) {
    return overflow_;
  }
  Status status = node_.require_finite(gradient, "gradient");
  return status.ok() ? take_gradient() : status;
}

Status NodeStepper::begin_step(std::span<const float> gradient, bool begins) {
  if (!overflow_.ok()) {
    return overflow_;
  }
  if (!node_.step_rule().stateless()) {
    if (Status status = node_.require_finite(gradient, "gradient"); !status.ok()) {
      return status;
    }
  }
  return begins ? take_gradient() : Status();
}

Status NodeStepper::take_gradient() {
  if (stepped_ == node_.round()) {
    return node_.fault(
        Fault::non_finite,
        "the update overflowed, and the step rule has taken its gradient in: it takes no "
        "other; go on from a checkpoint, with a lower learning rate");
  }
  stepped_ = node_.round();
  return {};
}

Status NodeStepper::leave_step_rule(const Status& status, std::span<const float> gradient,
                                    bool begins) {
  if (status.ok()) {
    return status;
  }
  if (node_.step_rule().stateless()) {
    if (Status bad = node_.require_finite(gradient, "gradient"); !bad.ok()) {
      stepped_ = begins ? std::nullopt : stepped_;  // nothing of it stays: another may come
      return bad;
    }
  }
  return overflow_ = node_.here(status);
}

Status NodeStepper::direction_part(bool begins, std::size_t first, std::span<const float> gradient,
                                   std::span<float> d) {
  if (Status status = begin_step(gradient, begins); !status.ok()) {
    return status.with_context(fmt::format("from parameter {} on", first));
  }
  if (begins) {
    node_.step_rule().begin_parts(node_.round());
  }
  const Status status = leave_step_rule(
      node_.step_rule().direction_part(first, node_.x().subspan(first, d.size()), gradient, d),
      gradient, begins);
  return status.with_context(fmt::format("from parameter {} on", first));
}

Result<Direction> NodeStepper::direction_in(std::span<const float> gradient,
                                            std::span<float> room) {
  check(gradient.size() == node_.dimension(), "a gradient has the dimension of the parameters");
  if (Status status = begin_step(gradient); !status.ok()) {
    return status;
  }
  auto d = node_.step_rule().direction_in(node_.round(), node_.x(), gradient, room);
  if (Status status = leave_step_rule(d.status(), gradient); !status.ok()) {
    return status;
  }
  return d;
}

Status NodeStepper::move(std::span<const float> from, std::span<const float> gradient,
                         std::span<float> out) {
  const auto d = direction_in(gradient, out);
  return d ? step_along(from, *d, out) : d.status();
}

Status NodeStepper::step_along(std::span<const float> from, const Direction& d,
                               std::span<float> out) const {
  const bool finite = node_.ops().combine({{1, from}, {-d.scale, d.values}}, out);
  return finite ? Status() : node_.require_finite(out, kUpdated);
}

Status NodeStepper::step(std::span<const float> gradient, std::span<float> scratch) {
  check(!node_.setup().directed, "the step rule makes the step");
  if (Status status = begin_step(gradient); !status.ok()) {
    return status;
  }
  const std::span<float> next = node_.step_rule().moves_in_place() ? node_.x() : scratch;
  const Status status =
      node_.step_rule().next_model(node_.round(), node_.x(), gradient, next, node_.ops());
  if (!status.ok()) {
    return leave_step_rule(status, gradient);
  }
  if (Status finite = node_.require_finite(next, kUpdated); !finite.ok()) {
    return finite;
  }
  if (next.data() != node_.x().data()) {
    node_.ops().copy(next, node_.x());
  }
  return {};
}

Status NodeStepper::step_from(std::span<const float> from, std::span<const float> gradient,
                              std::span<float> scratch) {
  if (node_.nodes() == 1 && !node_.setup().directed) {
    return step(gradient, scratch);
  }
  if (Status status = move(from, gradient, scratch); !status.ok()) {
    return status;
  }
  node_.ops().copy(scratch, node_.x());
  return {};
}

}  // namespace sotto
