#include <sotto/optim/algorithms/delayed_gradient.h>

#include <utility>

#include <fmt/format.h>

#include <sotto/optim/state_io.h>

namespace sotto {
namespace {

/// Directions are handed on as they are.
constexpr float kWhole = 1;

}  // namespace

DelayedGradient::DelayedGradient(const AlgorithmInfo& info, AlgorithmSetup setup)
    : accelerator_(setup.accelerator),
      z_(setup.parameters),
      x_(z_, *setup.ops),
      node_(info, stepping_part(setup)),
      direction_(node_.direction_room()) {
  setup.parameters = x_;
  setup.step_rule = make_step_rule({.learning_rate = 1}, *setup.ops);
  setup.direction_scale = &kWhole;
  inner_ = info.build(std::move(setup));
}

bool DelayedGradient::begin_round(Exchange& /*out*/) {
  node_.begin_round();
  return false;
}

Status DelayedGradient::gradient_ready(std::span<const float> gradient, Exchange& out, bool* post) {
  check(accepts_gradient(), "a delayed gradient is taken once the round before it is over");
  *post = false;
  // 2. d_t
  const auto d = node_.direction_in(gradient, direction_);
  if (!d) {
    return d.status();
  }
  // 3. A steps from x_t, which stays as it is until its exchange is over; z_{t+1} is where to
  if (Status status = inner_->step_ahead(*d, z_, out, post); !status) {
    Status own = node_.require_finite(z_, "updated model");
    node_.ops().copy(x_, z_);
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
  if (Status status = node_.load(in); !status) {
    return status;
  }
  if (Status status = inner_->load(in); !status) {
    return status;
  }
  if (inner_->round() != node_.round()) {
    return {Fault::malformed, fmt::format("checkpoint of an algorithm in round {} where {} is due",
                                          inner_->round(), node_.round())};
  }
  return read_floats(in, "model that was mixed", x_);
}

}  // namespace sotto
