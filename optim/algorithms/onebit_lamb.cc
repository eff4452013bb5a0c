#include <sotto/optim/algorithms/onebit_lamb.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <sotto/kernels/norm.h>
#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/common_hyperparameters.h>
#include <sotto/optim/state_io.h>
#include <sotto/optim/step_rules/trust_ratio.h>

namespace sotto {
namespace {

/// c̄ ← β₃ c̄ + (1 − β₃) c, c cut to its bounds; 0 is none.
void follow_ratio(double ratio, double& mean) {
  constexpr double kBeta3 = 0.9;
  if (ratio == 0) {
    return;
  }
  ratio = std::clamp(ratio, 0.01, 10.0);
  mean = mean == 0 ? ratio : kBeta3 * mean + (1 - kBeta3) * ratio;
}

Adam& moments_of(StepRule& rule) { return Lamb::of(rule).moments(); }

}  // namespace

OneBitLamb::OneBitLamb(AlgorithmSetup setup)
    : AdamMeanAlgorithm(kInfo, std::move(setup), moments_of),
      lamb_(Lamb::of(node_.step_rule())),
      freeze_step_(node_.hyperparameters().count(kFreezeStep)),
      tensors_(lamb_.layout().size()),
      fresh_(node_.dimension()),
      work_(node_.dimension()),
      direction_(node_.dimension()) {}

Status OneBitLamb::take_gradient(std::span<const float> gradient) {
  if (Status status = enter(gradient); !status.ok()) {
    return status;
  }
  if (frozen()) {
    // 1. and 2. m_i = β₁ m̄ + (1 − β₁) g_i, all tensors at one RMS
    freeze_gradient(gradient, freeze_step_, work_);
    adam_.momentum_after(work_);
    for (std::size_t l = 0; l < tensors_.size(); ++l) {
      node_.ops().scale(tensors_[l].scale, lamb_.layout()[l].of(std::span(work_)));
    }
    if (Status status = mean_.begin_compressed(work_, adam_.variance(), late_.gradients());
        !status.ok()) {
      return status;
    }
  } else {
    node_.ops().copy(gradient, work_);
    mean_.begin_exact(work_);
  }
  return {};
}

Status OneBitLamb::complete(const Exchange& exchange) {
  if (Status status = mean_.complete(exchange, work_); !status.ok() || mean_.open()) {
    return status;
  }
  const bool plain = !frozen();
  if (Status status = plain
                          ? node_.here(lamb_.direction(node_.round(), node_.x(), work_, direction_))
                          : squeezed_direction();
      !status.ok()) {
    return status;
  }
  if (Status status = move(); !status.ok()) {
    return status;
  }
  if (plain) {
    follow_ratios();
  }
  return {};
}

Status OneBitLamb::move() {
  node_.ops().subtract(node_.x(), direction_, direction_);
  if (Status status = node_.require_finite(direction_, "updated model"); !status.ok()) {
    return status;
  }
  node_.ops().copy(direction_, node_.x());
  node_.finish_round();
  return {};
}

void OneBitLamb::follow_ratios() {
  for (std::size_t l = 0; l < tensors_.size(); ++l) {
    follow_ratio(lamb_.ratios()[l], tensors_[l].ratio);
  }
  if (frozen()) {
    freeze();
  }
}

void OneBitLamb::freeze() {
  node_.ops().copy(adam_.variance(), fresh_);
  fresh_power_ = adam_.variance_power();
  mean_rms_ = 0;
  for (const ParameterBlock& block : lamb_.layout()) {
    mean_rms_ += rms_of_momentum(block) / static_cast<double>(tensors_.size());
  }
  for (std::size_t l = 0; l < tensors_.size(); ++l) {
    set_scale(l);
    const auto variance = lamb_.layout()[l].of(std::as_const(adam_).variance());
    tensors_[l].late = std::ranges::all_of(variance, [](float v) { return v == 0; });
    if (tensors_[l].late && has_trust_ratio(lamb_.layout(), lamb_.layout()[l])) {
      tensors_[l].ratio = 0;  // that of decay alone, or none
    }
  }
}

double OneBitLamb::rms_of_momentum(const ParameterBlock& block) const {
  const auto m = block.of(std::as_const(adam_).momentum());
  return m.empty() ? 0 : norm(m, node_.ops()) / std::sqrt(static_cast<double>(m.size()));
}

void OneBitLamb::set_scale(std::size_t l) {
  const auto scale = static_cast<float>(mean_rms_ / rms_of_momentum(lamb_.layout()[l]));
  // A tensor without momentum, or one too small to be scaled, stays as it is.
  tensors_[l].scale = scale > 0 && std::isfinite(scale) && std::isfinite(1 / scale) ? scale : 1;
}

void OneBitLamb::freeze_late_tensors() {
  auto joined = late_.joined();
  for (std::size_t l = 0; l < tensors_.size() && !joined.empty(); ++l) {
    const ParameterBlock& block = lamb_.layout()[l];
    const auto last = std::ranges::lower_bound(joined, block.offset + block.size);
    const auto here = static_cast<std::size_t>(last - joined.begin());
    if (here > 0 && tensors_[l].late) {
      set_scale(l);
      tensors_[l].late = false;
    }
    joined = joined.subspan(here);
  }
}

double OneBitLamb::change_of(const ParameterBlock& block, double last) const {
  constexpr double kStep = 0.1;
  constexpr double kLeast = 0.5;
  constexpr double kMost = 4;
  const auto frozen = block.of(std::as_const(adam_).variance());
  const auto fresh = block.of(std::span(fresh_));
  double largest = 0;
  for (std::size_t k = 0; k < frozen.size(); ++k) {
    if (frozen[k] != 0) {
      largest = std::max(largest, adam_.denominator_of(frozen[k], adam_.variance_power()) /
                                      adam_.denominator_of(fresh[k], fresh_power_));
    }
  }
  if (largest == 0) {
    return last;
  }
  return std::clamp(std::clamp(largest, (1 - kStep) * last, (1 + kStep) * last), kLeast, kMost);
}

Status OneBitLamb::squeezed_direction() {
  const auto momentum = adam_.momentum();
  const float beta1 = adam_.beta1();
  const float beta2 = adam_.beta2();
  for (std::size_t l = 0; l < tensors_.size(); ++l) {
    const ParameterBlock& block = lamb_.layout()[l];
    node_.ops().scale(1 / tensors_[l].scale, block.of(std::span(work_)));
  }
  // 3. v' from the gradient that the momentum tells of
  fresh_power_ *= static_cast<double>(beta2);
  for (std::size_t k = 0; k < work_.size(); ++k) {
    const float g = (work_[k] - beta1 * momentum[k]) / (1 - beta1);
    fresh_[k] = beta2 * fresh_[k] + (1 - beta2) * g * g;
  }
  if (Status status = node_.require_finite(fresh_, "fresh variance"); !status.ok()) {
    return status;
  }
  node_.ops().copy(work_, momentum);
  adam_.frozen_direction(node_.round(), direction_);
  if (Status status = node_.here(late_.step_and_join(adam_, node_.x(), direction_)); !status.ok()) {
    return status;
  }
  for (const std::size_t k : late_.joined()) {
    fresh_[k] = adam_.variance_after(k, fresh_power_);
  }
  const double gamma = lamb_.learning_rate(node_.round());
  for (std::size_t l = 0; l < tensors_.size(); ++l) {
    const ParameterBlock& block = lamb_.layout()[l];
    Tensor& tensor = tensors_[l];
    const auto step = block.of(std::span(direction_));
    const bool moves = norm(step, node_.ops()) > 0;
    lamb_.decay(block, node_.x(), step);
    double ratio = tensor.change * tensor.ratio;
    if (has_trust_ratio(lamb_.layout(), block)) {
      if (tensor.late) {
        ratio = lamb_.trust_ratio(block, node_.x(), step);
        follow_ratio(moves ? ratio : 0, tensor.ratio);
      } else {
        tensor.change = change_of(block, tensor.change);
        ratio = tensor.change * tensor.ratio;
      }
    }
    node_.ops().scale(step_factor(gamma, ratio), step);
  }
  freeze_late_tensors();
  return {};
}

std::vector<std::string> OneBitLamb::take_warnings() {
  return frozen() ? notice_.take(node_.layout(), adam_.variance(), freeze_step_)
                  : std::vector<std::string>();
}

void OneBitLamb::save(ByteBuffer& out) const {
  node_.save(out);
  out.write(freeze_step_);
  out.write(fresh_power_);
  for (const Tensor& tensor : tensors_) {
    out.write(tensor.ratio);
    out.write(tensor.change);
    out.write(tensor.scale);
    out.write(static_cast<std::uint8_t>(tensor.late));
  }
  out.write(mean_rms_);
  write_floats(fresh_, out);
  mean_.save(out);
  late_.save(out);
}

Status OneBitLamb::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  const auto freeze_step = in.read<Round>();
  fresh_power_ = in.read<double>();
  if (in.failed() || !(fresh_power_ >= 0 && fresh_power_ <= 1) || freeze_step != freeze_step_) {
    return {Fault::malformed, "checkpoint of a run with another freeze step"};
  }
  for (Tensor& tensor : tensors_) {
    tensor.ratio = in.read<double>();
    tensor.change = in.read<double>();
    tensor.scale = in.read<float>();
    tensor.late = in.read<std::uint8_t>() != 0;
    if (in.failed() || !std::isfinite(tensor.ratio) || !std::isfinite(tensor.change) ||
        !(tensor.scale > 0) || !std::isfinite(tensor.scale)) {
      return {Fault::malformed, "checkpoint without the ratios of the tensors"};
    }
  }
  mean_rms_ = in.read<double>();
  if (in.failed() || !std::isfinite(mean_rms_) || mean_rms_ < 0) {
    return {Fault::malformed, "checkpoint without the size of the momenta"};
  }
  if (Status status = read_floats(in, "fresh variance", fresh_); !status.ok()) {
    return status;
  }
  if (Status status = mean_.load(in); !status.ok()) {
    return status;
  }
  return late_.load(in, adam_, freeze_step_);
}

namespace {

constexpr Hyperparameter kOneBitLambHyperparameters[] = {freeze_step("")};

}  // namespace

constinit const AlgorithmInfo OneBitLamb::kInfo = {
    .name = "onebit-lamb",
    .title = "1-bit LAMB, step lengths by tensor",
    .paper = "Li et al. 2021, arXiv:2104.06069",
    .rule =
        "m_i = β₁ m̄ + (1 − β₁) g_i; m̄ ← C(mean_i C(s m_i + δ_i) + δ̄) / s; "
        "x_l ← x_l − γ r_l c_l (m̄ / (√v + ε) + λ x)_l, v and c frozen",
    .summary = "as onebit-adam, for large batches",
    .hyperparameters = kOneBitLambHyperparameters,
    .contract = ContractKind::contraction,
    .graph = GraphNeed::any,
    .graph_change = GraphChange::any,
    .step_rules = {.only = "lamb"},
    .compressors = {.of_chunks = true},
    .agreement = SettingsAgreement::required,
    .bytes = "2 (n−1)/n · |C|; 4d for |C| before freeze_step",
    .memory = {.floats = 4, .per_nth = 3},
    .default_compressor = "sign",
    .planned =
        {.why_not =
             "it is for batches that are too large for Adam, at a rate that is tuned by hand"},
    .wire_id = wire_id(AlgorithmId::onebit_lamb),
    .build = build_algorithm<OneBitLamb>};

}  // namespace sotto
