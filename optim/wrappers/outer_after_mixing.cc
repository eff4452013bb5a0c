#include <sotto/optim/wrappers/outer_after_mixing.h>

#include <utility>

#include <fmt/format.h>

namespace sotto {
namespace {

AlgorithmSetup gossip_part(AlgorithmSetup setup, std::span<float> mixed) {
  setup.parameters = mixed;
  setup.step_rule = make_step_rule({.learning_rate = 1}, *setup.ops);
  setup.outer_after_mixing = false;
  return setup;
}

}  // namespace

OuterAfterMixing::OuterAfterMixing(const AlgorithmInfo& info, AlgorithmSetup setup)
    : NodeAlgorithm(info, stepping_part(setup)),
      mixed_(node_.x(), node_.ops()),
      work_(node_.vector()),
      inner_(build_exchanging(info, gossip_part(std::move(setup), mixed_))) {}

Status OuterAfterMixing::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "the outer rule takes one movement a round");
  // 1. p_i = φ_i − Δ_i
  node_.ops().subtract(node_.x(), gradient, mixed_);
  if (Status status = node_.require_finite(mixed_, "model after its own movement"); !status.ok()) {
    return status;
  }
  // 2. the gossip mixes it
  node_.ops().fill(0, work_);
  inner_->begin_round();
  mixing_ = true;
  given_ = false;
  return advance().status();
}

Result<bool> OuterAfterMixing::advance() {
  if (mixing_ && !given_ && inner_->accepts_gradient()) {
    given_ = true;
    Status status = inner_->take_gradient(work_);
    return status.ok() ? Result(true) : std::move(status);
  }
  if (mixing_ && given_ && inner_->parameters_ready()) {
    Status status = step();
    return status.ok() ? Result(true) : std::move(status);
  }
  return false;
}

Status OuterAfterMixing::step() {
  // 3. φ_i ← φ_i − d(φ_i − m_i)
  node_.ops().subtract(node_.x(), mixed_, work_);
  if (Status status = node_.stepper().step(work_, mixed_); !status.ok()) {
    return status;
  }
  mixing_ = false;
  node_.finish_round();
  return {};
}

Result<bool> OuterAfterMixing::next_exchange(Exchange& out) {
  for (;;) {
    auto more = inner_->next_exchange(out);
    if (!more.ok() || *more) {
      return more;
    }
    auto moved = advance();
    if (!moved.ok() || !*moved) {
      return moved;
    }
  }
}

Status OuterAfterMixing::complete(const Exchange& exchange) {
  if (Status status = inner_->complete(exchange); !status.ok()) {
    return status;
  }
  return advance().status();
}

void OuterAfterMixing::save(ByteBuffer& out) const {
  node_.save(out);
  inner_->save(out);
}

Status OuterAfterMixing::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  if (Status status = inner_->load(in); !status.ok()) {
    return status;
  }
  if (inner_->round() != node_.round()) {
    return {Fault::malformed, fmt::format("checkpoint of a gossip in round {} where {} is due",
                                          inner_->round(), node_.round())};
  }
  mixing_ = given_ = false;
  return {};
}

}  // namespace sotto
