#include <sotto/optim/wrappers/delayed_gradient.h>

#include <utility>

#include <fmt/format.h>

#include <sotto/optim/state_io.h>

namespace sotto {
DelayedGradient::DelayedGradient(const AlgorithmInfo& info, AlgorithmSetup setup)
    : NodeAlgorithm(info, stepping_part(setup)),
      x_(node_.x(), node_.ops()),
      direction_(node_.stepper().direction_room()) {
  setup.parameters = x_;
  setup.step_rule = make_step_rule({.learning_rate = 1}, *setup.ops);
  setup.directed = true;
  inner_ = info.build(std::move(setup));
}

Status DelayedGradient::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "a delayed gradient is taken once the round before it is over");
  // 2. d_t
  const auto d = node_.stepper().direction_in(gradient, direction_);
  return d ? take(*d) : d.status();
}

Status DelayedGradient::take_direction(const Direction& d) {
  check(accepts_gradient(), "a delayed gradient is taken once the round before it is over");
  return take(d);
}

Status DelayedGradient::take(const Direction& d) {
  // 3. A steps from x_t, which stays as it is until its exchange is over; z_{t+1} is where to
  if (Status status = inner_->step_ahead(d, node_.x()); !status.ok()) {
    Status own = node_.require_finite(node_.x(), "updated model");
    node_.ops().copy(x_, node_.x());
    return own.ok() ? status : own;
  }
  node_.finish_round();
  return {};
}

void DelayedGradient::save(ByteBuffer& out) const {
  node_.save(out);
  inner_->save(out);
  write_floats(x_, out);
}

Status DelayedGradient::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  if (Status status = inner_->load(in); !status.ok()) {
    return status;
  }
  if (inner_->round() != node_.round()) {
    return {Fault::malformed, fmt::format("checkpoint of an algorithm in round {} where {} is due",
                                          inner_->round(), node_.round())};
  }
  return read_floats(in, "model that was mixed", x_);
}

}  // namespace sotto
