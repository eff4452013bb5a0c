#include <sotto/optim/algorithms/zero_one_adam.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/common_hyperparameters.h>
#include <sotto/optim/frozen_adam/zero_where_zero.h>
#include <sotto/optim/state_io.h>

namespace sotto {
namespace {

constexpr Round kNoRound = std::numeric_limits<Round>::max();

/// 2^exponent, as far as it fits.
Round doubled(Round exponent) { return Round{1} << std::min<Round>(exponent, 62); }

/// k_{j+1}, given k_j; κ = 16.
Round following_variance(Round round, Round index, std::optional<Round> freeze_step) {
  constexpr Round kKappa = 16;
  const Round interval = doubled(index / kKappa);
  const Round end = freeze_step.value_or(kNoRound);
  return round < end && interval < end - round ? round + interval : kNoRound;
}

}  // namespace

ZeroOneAdam::ZeroOneAdam(AlgorithmSetup setup)
    : AdamMeanAlgorithm(kInfo, std::move(setup)),
      freeze_step_(node_.hyperparameters().optional_count(kFreezeStep)),
      local_step_limit_(node_.hyperparameters().count("limit")),
      common_(node_.x().begin(), node_.x().end()),
      sum_(node_.dimension()),
      gradient_(node_.dimension()),
      work_(node_.dimension()) {}

bool ZeroOneAdam::exchanges_now() const {
  if (!freeze_step_) {
    return true;
  }
  const Round interval = std::min(local_step_limit_, doubled(node_.round() / *freeze_step_));
  return since_exchange_ + 1 >= interval;
}

bool ZeroOneAdam::variance_frozen() const { return freeze_step_ && next_variance_ == kNoRound; }

Status ZeroOneAdam::take_gradient(std::span<const float> gradient) {
  if (Status status = enter(gradient); !status.ok()) {
    return status;
  }
  node_.ops().copy(gradient, gradient_);
  if (updates_variance()) {
    mean_.begin_exact(gradient_);
    return {};
  }
  adam_.clip(gradient_, work_);
  if (variance_frozen()) {
    late_.take_gradient(work_, adam_, node_.round(), *freeze_step_);
  }
  adam_.penalize(node_.x(), work_);
  step();
  if (!exchanges_now()) {
    ++since_exchange_;
    adam_.precondition(1, work_, gradient_);
    return move();
  }
  return mean_.begin_compressed(work_, adam_.variance(), late_.gradients());
}

Status ZeroOneAdam::complete(const Exchange& exchange) {
  const std::span<float> mean = updates_variance() ? gradient_ : work_;
  if (Status status = mean_.complete(exchange, mean); !status.ok() || mean_.open()) {
    return status;
  }
  if (updates_variance()) {
    if (Status status = take_variance(); !status.ok()) {
      return status;
    }
    adam_.clip(gradient_, work_);
    adam_.penalize(node_.x(), work_);
    step();
  } else if (const auto factor = static_cast<float>(1 / rates_); std::isfinite(factor)) {
    node_.ops().copy(work_, adam_.momentum());
    node_.ops().scale(factor, adam_.momentum());
  }  // else a schedule has come to γ = 0, and u tells nothing of m
  return take_mean();
}

Status ZeroOneAdam::take_variance() {
  // 1. v ← β₂ v + (1 − β₂) ḡ²
  if (Status status = node_.here(adam_.observe(gradient_)); !status.ok()) {
    return status;
  }
  mean_.clear_errors();
  next_variance_ = following_variance(node_.round(), variances_, freeze_step_);
  ++variances_;
  return {};
}

void ZeroOneAdam::step() {
  const Ops& ops = node_.ops();
  // 2. m_i ← β₁ m_i + (1 − β₁) (g_i + λ x_i);  u_i ← u_i + γ̂ m_i
  adam_.momentum_after(work_);
  zero_where_zero(adam_.variance(), work_);
  ops.copy(work_, adam_.momentum());
  const double rate = adam_.next_rate(node_.round());
  rates_ += rate;
  ops.axpy(static_cast<float>(rate), work_, sum_);
  ops.copy(sum_, work_);
}

Status ZeroOneAdam::take_mean() {
  // 3. x' ← x' − ū / (√v̂ + ε);  u_i ← 0
  adam_.precondition(1, work_, gradient_);
  if (Status status = node_.here(late_.step_and_join(adam_, common_, gradient_)); !status.ok()) {
    return status;
  }
  if (Status status = move(); !status.ok()) {
    return status;
  }
  node_.ops().copy(node_.x(), common_);
  node_.ops().fill(0, sum_);
  rates_ = 0;
  since_exchange_ = 0;
  ++exchanges_;
  return {};
}

Status ZeroOneAdam::move() {
  node_.ops().subtract(common_, gradient_, gradient_);
  if (Status status = node_.require_finite(gradient_, "updated model"); !status.ok()) {
    return status;
  }
  node_.ops().copy(gradient_, node_.x());
  node_.finish_round();
  return {};
}

std::vector<std::string> ZeroOneAdam::take_warnings() {
  return variance_frozen() ? notice_.take(node_.layout(), adam_.variance(), *freeze_step_)
                           : std::vector<std::string>();
}

void ZeroOneAdam::save(ByteBuffer& out) const {
  node_.save(out);
  out.write(freeze_step_.value_or(kNoRound));
  out.write(rates_);
  out.write(since_exchange_);
  out.write(next_variance_);
  out.write(variances_);
  out.write(exchanges_);
  write_floats(common_, out);
  write_floats(sum_, out);
  mean_.save(out);
  late_.save(out);
}

Status ZeroOneAdam::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  const auto freeze_step = in.read<Round>();
  rates_ = in.read<double>();
  since_exchange_ = in.read<Round>();
  next_variance_ = in.read<Round>();
  variances_ = in.read<Round>();
  exchanges_ = in.read<Round>();
  if (in.failed() || !std::isfinite(rates_) || rates_ < 0) {
    return {Fault::malformed, "checkpoint without the state of the schedule of exchanges"};
  }
  if (freeze_step != freeze_step_.value_or(kNoRound)) {
    return {Fault::malformed, "checkpoint of a run with another freeze step"};
  }
  if (Status status = read_floats(in, "common model", common_); !status.ok()) {
    return status;
  }
  if (Status status = read_floats(in, "sum of steps", sum_); !status.ok()) {
    return status;
  }
  if (Status status = mean_.load(in); !status.ok()) {
    return status;
  }
  return late_.load(in, adam_, freeze_step_.value_or(kNoRound));
}

namespace {

constexpr Hyperparameter kZeroOneAdamHyperparameters[] = {
    freeze_step("auto"),
    {.key = "limit",
     .symbol = "H",
     .help = "the most rounds from one exchange to the next after the freeze",
     .why = "1 is an exchange in every round",
     .fallback = "16",
     .needs = kFreezeStep,
     .setting = "local_step_limit"}};

}  // namespace

constinit const AlgorithmInfo ZeroOneAdam::kInfo = {
    .name = "zeroone-adam",
    .title = "0/1 Adam, fewer variances and local steps",
    .paper = "Lu et al. 2022, arXiv:2202.06009",
    .rule =
        "m_i = β₁ m_i + (1 − β₁) g_i; u_i ← u_i + γ m_i; x_i = x' − u_i / (√v + ε); "
        "now and then u ← C(mean_i C(u_i + δ_i) + δ̄), m_i = u / Σγ, x' = x_i",
    .summary =
        "as onebit-adam without its warm-up: a bit an element from the start, "
        "and not in every round after freeze_step",
    .hyperparameters = kZeroOneAdamHyperparameters,
    .contract = ContractKind::contraction,
    .graph = GraphNeed::any,
    .graph_change = GraphChange::any,
    .step_rules = {.only = "adam"},
    .compressors = {.of_chunks = true},
    .agreement = SettingsAgreement::required,
    .bytes = "2 (n−1)/n · |C|; 4d for |C| in rounds of variance, 0 in local steps",
    .memory = {.floats = 5, .per_nth = 3},
    .default_compressor = "sign",
    .planned = {.why_not =
                    "its exchanges get rarer as it goes on, and no steady round stands for them"},
    .wire_id = wire_id(AlgorithmId::zero_one_adam),
    .build = build_algorithm<ZeroOneAdam>};

}  // namespace sotto
