#include <sotto/optim/wrappers/local_steps.h>

#include <utility>

#include <fmt/format.h>

#include <sotto/optim/state_io.h>
#include <sotto/optim/wrappers/outer_after_mixing.h>

namespace sotto {
namespace {

AlgorithmSetup inner_part(AlgorithmSetup setup, std::span<float> synced) {
  setup.parameters = synced;
  setup.step_rule = std::move(setup.outer_step_rule);
  setup.communication_interval = 1;
  return setup;
}

std::unique_ptr<Algorithm> build_inner(const AlgorithmInfo& info, AlgorithmSetup setup) {
  return setup.outer_after_mixing ? std::make_unique<OuterAfterMixing>(info, std::move(setup))
                                  : build_exchanging(info, std::move(setup));
}

}  // namespace

LocalSteps::LocalSteps(const AlgorithmInfo& info, AlgorithmSetup setup)
    : NodeAlgorithm(info, stepping_part(setup)),
      interval_(setup.communication_interval),
      weighted_(setup.weighted),
      synced_(node_.x(), node_.ops()),
      moved_(node_.vector()),
      work_(node_.vector()),
      inner_(build_inner(info, inner_part(std::move(setup), synced_))) {}

bool LocalSteps::accepts_gradient() const {
  return node_.in_round() && !handed_over_ && (!at_exchange() || inner_->accepts_gradient());
}

Status LocalSteps::placed(const Status& status) const {
  return status.with_context(
      fmt::format("node {}, round {}, at an exchange", node_.rank(), node_.round()));
}

void LocalSteps::begin_round() {
  check(parameters_ready(), "a round of local steps begins at a model");
  node_.begin_round();
  if (!begun_) {
    begun_ = true;
    inner_->begin_round();
  }
}

Status LocalSteps::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "local steps take one gradient a round");

  // 1. Δ_i ← Δ_i + d(g_i)
  if (Status status = node_.stepper().direction(gradient, work_); !status.ok()) {
    return status;
  }
  node_.ops().axpy(1, moved_, work_);
  if (!at_exchange()) {
    return step();
  }

  // 2. the inner algorithm takes Δ_i for its gradient, times n w_i / Σ_j w_j
  if (weighted_) {
    node_.ops().scale(node_.terms().share, work_);
  }
  if (Status status = node_.require_finite(work_, "movement since the last exchange");
      !status.ok()) {
    return status;
  }
  if (Status status = inner_->take_gradient(work_); !status.ok()) {
    return placed(status);
  }
  handed_over_ = true;
  take_synced();
  return {};
}

Status LocalSteps::step() {
  node_.ops().subtract(synced_, work_, node_.x());
  if (Status status = node_.require_finite(node_.x(), "updated model"); !status.ok()) {
    node_.ops().subtract(synced_, moved_, node_.x());  // as it was
    return status;
  }
  std::swap(moved_, work_);
  node_.finish_round();
  return {};
}

void LocalSteps::take_synced() {
  if (!handed_over_ || !inner_->parameters_ready()) {
    return;
  }
  node_.ops().copy(synced_, node_.x());
  node_.ops().fill(0, moved_);
  begun_ = false;
  handed_over_ = false;
  node_.finish_round();
}

Result<bool> LocalSteps::next_exchange(Exchange& out) {
  auto more = inner_->next_exchange(out);
  if (!more.ok()) {
    return placed(more.status());
  }
  under_way_ += *more ? 1U : 0U;
  take_synced();
  return more;
}

Status LocalSteps::complete(const Exchange& exchange) {
  if (Status status = inner_->complete(exchange); !status.ok()) {
    return placed(status);
  }
  --under_way_;
  take_synced();
  return {};
}

void LocalSteps::save(ByteBuffer& out) const {
  node_.save(out);
  out.write(interval_);
  write_floats(synced_, out);
  write_floats(moved_, out);
  inner_->save(out);
}

Status LocalSteps::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  const auto interval = in.read<Round>();
  if (in.failed() || interval != interval_) {
    return {Fault::malformed,
            fmt::format("checkpoint of a run that exchanges every {} rounds where every {} is due",
                        interval, interval_)};
  }
  if (Status status = read_floats(in, "model of the last exchange", synced_); !status.ok()) {
    return status;
  }
  if (Status status = read_floats(in, "movement since the last exchange", moved_); !status.ok()) {
    return status;
  }
  if (Status status = inner_->load(in); !status.ok()) {
    return status;
  }
  if (inner_->round() != node_.round() / interval_) {
    return {Fault::malformed, fmt::format("checkpoint of round {} with {} exchanges, one every {}",
                                          node_.round(), inner_->round(), interval_)};
  }
  begun_ = false;
  handed_over_ = false;
  under_way_ = 0;
  return {};
}

}  // namespace sotto
