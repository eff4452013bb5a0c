#include <sotto/optim/algorithms/delayed_gradient.h>

#include <utility>

#include <sotto/optim/state_io.h>

namespace sotto {

DelayedGradient::DelayedGradient(const AlgorithmInfo& info, AlgorithmSetup setup)
    : accelerator_(setup.accelerator), ops_(*setup.ops), z_(setup.parameters), x_(z_, ops_) {
  setup.parameters = x_;
  inner_ = build_exchanging(info, std::move(setup));
}

bool DelayedGradient::begin_round(Exchange& out) {
  check(!in_round_, "begin_round starts a round once");
  in_round_ = true;
  waiting_ = !inner_->parameters_ready();
  return !waiting_ && inner_->begin_round(out);
}

Result<bool> DelayedGradient::next_exchange(Exchange& out) {
  if (waiting_ && inner_->parameters_ready()) {
    waiting_ = false;
    if (inner_->begin_round(out)) {
      return true;
    }
  }
  return inner_->next_exchange(out);
}

Status DelayedGradient::gradient_ready(std::span<const float> gradient, Exchange& out, bool* post) {
  check(accepts_gradient(), "a delayed gradient is taken once the round before it is over");
  // 2. A steps from x_t, which stays as it is until the exchange is over
  if (Status status = inner_->gradient_ready(gradient, out, post); !status) {
    return status;
  }
  // 1. z_{t+1} = x_t
  ops_.copy(x_, z_);
  in_round_ = false;
  ++round_;
  return {};
}

void DelayedGradient::save(ByteBuffer& out) const {
  inner_->save(out);
  write_floats(x_, out);
}

Status DelayedGradient::load(ByteReader& in) {
  if (Status status = inner_->load(in); !status) {
    return status;
  }
  if (Status status = read_floats(in, "model of the round before", x_); !status) {
    return status;
  }
  round_ = inner_->round();
  in_round_ = waiting_ = false;
  return {};
}

}  // namespace sotto
