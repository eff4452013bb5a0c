#include <sotto/optim/privacy/private_gradient.h>

#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include <sotto/kernels/ops.h>

namespace sotto {
namespace {

/// The settings under which a state must have been saved.
std::array<double, 4> saved_settings(const PrivacyOptions& o) {
  return {o.clip_norm, o.noise_multiplier, o.sampling_rate, o.batch};
}

}  // namespace

PrivateGradient::PrivateGradient(std::unique_ptr<Algorithm> inner,
                                 std::shared_ptr<StepBudget> budget, Rank rank)
    : ForwardingAlgorithm(std::move(inner)),
      budget_(std::move(budget)),
      rank_(rank),
      mechanism_(budget_->options(), rank),
      released_(parameters().size()) {}

Status PrivateGradient::fault(Fault kind, std::string_view message) const {
  return {kind, fmt::format("node {}, round {}: {}", rank_, round(), message)};
}

Status PrivateGradient::take_gradient(std::span<const float> gradient) {
  if (budget_->exhausted()) {
    return fault(Fault::budget, budget_->refusal());
  }
  if (const auto bad = host_ops().count_non_finite(gradient); bad.count > 0) {
    return fault(Fault::non_finite,
                 fmt::format("the gradient has {} of {} elements that are not finite, the first at "
                             "{}",
                             bad.count, gradient.size(), bad.first));
  }
  mechanism_.release(budget_->steps(), gradient, released_);
  budget_->count_step();
  return inner().take_gradient(released_);
}

void PrivateGradient::save(ByteBuffer& out) const {
  for (const double value : saved_settings(budget_->options())) {
    out.write(value);
  }
  out.write(budget_->steps());
  inner().save(out);
}

Status PrivateGradient::load(ByteReader& in) {
  for (const double value : saved_settings(budget_->options())) {
    if (in.read<double>() != value) {
      return {Fault::malformed, "the state was saved under other privacy settings"};
    }
  }
  budget_->spend_at_least(in.read<std::uint64_t>());
  return inner().load(in);
}

}  // namespace sotto
