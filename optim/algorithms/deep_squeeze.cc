#include <sotto/optim/algorithms/deep_squeeze.h>

#include <functional>
#include <utility>

#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/common_hyperparameters.h>
#include <sotto/optim/exchange/finite_watch.h>
#include <sotto/optim/exchange/neighbours.h>
#include <sotto/optim/state_io.h>

namespace sotto {

DeepSqueeze::DeepSqueeze(AlgorithmSetup setup)
    : MailAlgorithm(kInfo, std::move(setup)),
      eta_(node_.hyperparameters().real("eta")),
      sum_(node_),
      error_(node_.vector()),
      v_(node_.vector()),
      own_half_(node_.steps_ahead() ? Vector() : node_.vector()),
      half_(own_half_) {}

Status DeepSqueeze::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "DeepSqueeze takes one gradient a round");
  // 1. x_i^½ = x_i − γ g_i
  half_ = own_half_;
  if (Status status = node_.stepper().move(node_.x(), gradient, half_); !status.ok()) {
    return status;
  }
  return send_compensated();
}

Status DeepSqueeze::take_direction(const Direction& d) {
  check(accepts_gradient(), "DeepSqueeze takes one gradient a round");
  half_ = own_half_;
  if (Status status = node_.stepper().step_along(node_.x(), d, half_); !status.ok()) {
    return status;
  }
  return send_compensated();
}

Status DeepSqueeze::step_ahead(const Direction& d, std::span<float> stepped) {
  begin_round();
  half_ = stepped;
  if (Status status = node_.stepper().step_along(node_.x(), d, half_); !status.ok()) {
    return status;
  }
  return send_compensated();
}

Status DeepSqueeze::send_compensated() {
  // 2. v_i = x_i^½ + δ_i; send C(v_i); δ_i ← v_i − C(v_i)
  const auto payload = node_.encoder().encode_compensated(half_, error_, v_, mail_.outgoing());
  if (!payload.ok()) {
    return payload.status();
  }
  std::swap(error_, v_);
  mail_.post(graph_plan(node_), payload->size());
  return {};
}

Status DeepSqueeze::complete(const Exchange& exchange) {
  if (Status status = mail_.accept(exchange); !status.ok()) {
    return status;
  }
  // 3. x_i ← x_i^½ + η Σ_j (W_ij − 1[i = j]) C(v_j)
  FiniteWatch watch(node_);
  const auto step = [&](std::size_t first, std::span<const float> change) {
    const auto half = half_.subspan(first, change.size());
    watch.note(
        node_.ops().combine({{1, half}, {eta_, change}}, node_.x().subspan(first, change.size())));
  };
  sum_.take_gossip(node_, mail_);
  if (Status status = sum_.show(node_, mail_, v_, std::cref(step)); !status.ok()) {
    return status;
  }
  mail_.close();
  if (Status status = watch.require(node_.x(), "updated model"); !status.ok()) {
    return status;
  }
  node_.finish_round();
  return {};
}

void DeepSqueeze::save(ByteBuffer& out) const {
  node_.save(out);
  write_floats(error_, out);
}

Status DeepSqueeze::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  return read_floats(in, "error", error_);
}

namespace {

constexpr Hyperparameter kDeepSqueezeHyperparameters[] = {consensus_stepsize(default_eta<1>)};
constexpr std::string_view kDeepSqueezePlanned[] = {"quant:4", "sign"};

}  // namespace

constinit const AlgorithmInfo DeepSqueeze::kInfo = {
    .name = "deepsqueeze",
    .title = "DeepSqueeze, error-compensated compression",
    .paper = "Tang et al. 2019, arXiv:1907.07346",
    .rule =
        "v_i = x_i − γ g_i + δ_i; δ_i ← v_i − C(v_i); "
        "x_i ← x_i − γ g_i + η Σ_j (W_ij − 1[i=j]) C(v_j)",
    .summary = "any contraction, changing graphs, little memory",
    .hyperparameters = kDeepSqueezeHyperparameters,
    .contract = ContractKind::contraction,
    .graph = GraphNeed::doubly_stochastic,
    .graph_change = GraphChange::any,
    .cutting = Cutting::separable,
    .hides_behind = HidesBehind::delayed_gradient,
    .local_steps = {.outer_after_mixing = true},
    .step_rules = {.may_follow_model = true},
    .accelerated = true,
    .pattern = ExchangePattern::neighbours,
    .bytes = "degree · |C|",
    .memory = {.floats = 3},
    .default_compressor = "sign",
    .planned = {.compressors = kDeepSqueezePlanned},
    .wire_id = wire_id(AlgorithmId::deepsqueeze),
    .build = build_algorithm<DeepSqueeze>};

}  // namespace sotto
