#include <sotto/optim/algorithms/apm_squeeze.h>

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/common_hyperparameters.h>
#include <sotto/optim/state_io.h>

namespace sotto {
ApmSqueeze::ApmSqueeze(const AlgorithmInfo& info, AlgorithmSetup setup)
    : AdamMeanAlgorithm(info, std::move(setup)),
      work_(node_.dimension()),
      direction_(node_.dimension()),
      given_freeze_(node_.hyperparameters().optional_count(kFreezeStep)),
      freeze_round_(given_freeze_.value_or(kNotYet)) {}

Status ApmSqueeze::take_gradient(std::span<const float> gradient) {
  if (Status status = enter(gradient); !status.ok()) {
    return status;
  }
  if (frozen()) {
    freeze_gradient(gradient, freeze_round_, work_);
    adam_.momentum_after(work_);
    if (Status status = mean_.begin_compressed(work_, variance(), late_.gradients());
        !status.ok()) {
      return status;
    }
  } else {
    node_.ops().copy(gradient, work_);
    mean_.begin_exact(work_);
  }
  return {};
}

Status ApmSqueeze::complete(const Exchange& exchange) {
  const Status status = mean_.complete(exchange, work_);
  return !status.ok() || mean_.open() ? status : step();
}

Status ApmSqueeze::step() {
  const Ops& ops = node_.ops();
  if (frozen()) {
    ops.copy(work_, adam_.momentum());
    adam_.frozen_direction(node_.round(), direction_);
    if (Status status = node_.here(late_.step_and_join(adam_, node_.x(), direction_));
        !status.ok()) {
      return status;
    }
  } else if (Status status =
                 node_.here(adam_.direction(node_.round(), node_.x(), work_, direction_));
             !status.ok()) {
    return status;
  }
  ops.subtract(node_.x(), direction_, direction_);
  if (Status status = node_.require_finite(direction_, "updated model"); !status.ok()) {
    return status;
  }
  ops.copy(direction_, node_.x());
  node_.finish_round();
  watch_variance();
  return {};
}

void ApmSqueeze::watch_variance() {
  constexpr double kStable = 0.96;
  if (freeze_round_ != kNotYet || node_.round() % adam_.variance_memory() != 0) {
    return;
  }
  const double norm = adam_.variance_norm();
  if (last_norm_ > 0 && norm >= kStable * last_norm_) {
    freeze_round_ = node_.round();
  }
  last_norm_ = norm;
}

std::vector<std::string> ApmSqueeze::take_warnings() {
  return frozen() ? notice_.take(node_.layout(), adam_.variance(), freeze_round_)
                  : std::vector<std::string>();
}

void ApmSqueeze::save(ByteBuffer& out) const {
  node_.save(out);
  out.write(freeze_round_);
  out.write(last_norm_);
  mean_.save(out);
  late_.save(out);
}

Status ApmSqueeze::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  const auto saved_freeze = in.read<Round>();
  last_norm_ = in.read<double>();
  if (in.failed() || saved_freeze == 0 || !std::isfinite(last_norm_) || last_norm_ < 0) {
    return {Fault::malformed, "checkpoint without the state of the variance"};
  }
  if (given_freeze_ && saved_freeze != *given_freeze_) {
    return {Fault::malformed,
            fmt::format(
                "checkpoint of a run that freezes the variance {} where it is to be after "
                "round {}",
                saved_freeze == kNotYet ? "by itself" : fmt::format("after round {}", saved_freeze),
                *given_freeze_)};
  }
  freeze_round_ = saved_freeze;
  if (Status status = mean_.load(in); !status.ok()) {
    return status;
  }
  return late_.load(in, adam_, freeze_round_);
}

namespace {

constexpr std::string_view kSqueezeRule =
    "m_i = β₁ m̄ + (1 − β₁) g_i; m̄ ← C(mean_i C(m_i + δ_i) + δ̄); "
    "x ← x − γ m̄ / (√v + ε), v frozen";

template <const AlgorithmInfo& info>
std::unique_ptr<Algorithm> build_squeeze(AlgorithmSetup setup) {
  return std::make_unique<ApmSqueeze>(info, std::move(setup));
}

/// watch_variance compares the variance at every multiple of its memory with the one before.
Round earliest_freeze(float beta2) { return 2 * Adam::variance_memory(beta2); }

constexpr Hyperparameter kApmSqueezeHyperparameters[] = {freeze_step("")};
constexpr Hyperparameter kOneBitAdamHyperparameters[] = {freeze_step("auto")};
constexpr std::string_view kOneBitAdamPlanned[] = {"sign"};

}  // namespace

constinit const AlgorithmInfo ApmSqueeze::kApmSqueeze = {
    .name = "apmsqueeze",
    .title = "APMSqueeze, Adam-preconditioned momentum through chunk owners",
    .paper = "Tang et al. 2020, arXiv:2008.11343",
    .rule = kSqueezeRule,
    .summary = "Adam to all nodes in a bit an element, after freeze_step plain rounds",
    .hyperparameters = kApmSqueezeHyperparameters,
    .contract = ContractKind::contraction,
    .graph = GraphNeed::any,
    .graph_change = GraphChange::any,
    .step_rules = {.only = "adam"},
    .compressors = {.of_chunks = true},
    .agreement = SettingsAgreement::required,
    .bytes = "2 (n−1)/n · |C|; 4d for |C| before freeze_step",
    .memory = {.floats = 3, .per_nth = 3},
    .default_compressor = "sign",
    .planned =
        {.why_not =
             "onebit-adam, which is tried, exchanges as much and finds by itself when to freeze"},
    .wire_id = wire_id(AlgorithmId::apmsqueeze),
    .build = build_squeeze<ApmSqueeze::kApmSqueeze>};

constinit const AlgorithmInfo ApmSqueeze::kOneBitAdam = {
    .name = "onebit-adam",
    .title = "1-bit Adam, momentum through chunk owners",
    .paper = "Tang et al. 2021, arXiv:2102.02888",
    .rule = kSqueezeRule,
    .summary = "as apmsqueeze, but finds by itself when the variance is stable",
    .hyperparameters = kOneBitAdamHyperparameters,
    .contract = ContractKind::contraction,
    .graph = GraphNeed::any,
    .graph_change = GraphChange::any,
    .step_rules = {.only = "adam"},
    .compressors = {.of_chunks = true},
    .earliest_freeze = earliest_freeze,
    .agreement = SettingsAgreement::required,
    .bytes = "2 (n−1)/n · |C|; 4d for |C| before the freeze",
    .memory = {.floats = 3, .per_nth = 3},
    .default_compressor = "sign",
    .planned = {.compressors = kOneBitAdamPlanned},
    .wire_id = wire_id(AlgorithmId::onebit_adam),
    .build = build_squeeze<ApmSqueeze::kOneBitAdam>};

}  // namespace sotto
