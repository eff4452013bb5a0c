#include <sotto/optim/privacy/private_gradient.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/kernels/ops.h>

namespace sotto {
namespace {

const PrivacyOptions& checked(const PrivacyOptions& options) {
  check_privacy(options);
  return options;
}

}  // namespace

PrivateGradient::PrivateGradient(std::unique_ptr<Algorithm> inner, const PrivacyOptions& options,
                                 Rank rank)
    : ForwardingAlgorithm(std::move(inner)),
      options_(checked(options)),
      rank_(rank),
      allowed_(allowed_steps(options)),
      mechanism_(options, rank),
      released_(parameters().size()) {}

void PrivateGradient::spend_at_least(std::uint64_t steps) { steps_ = std::max(steps_, steps); }

Status PrivateGradient::fault(Fault kind, std::string_view message) const {
  return {kind, fmt::format("node {}, round {}: {}", rank_, round(), message)};
}

Status PrivateGradient::take_gradient(std::span<const float> gradient) {
  if (steps_ >= allowed_) {
    return fault(Fault::budget,
                 fmt::format("the privacy budget is spent: after {} steps epsilon is {:.6g} at "
                             "delta {:g}, and another step would exceed {:g}; nothing was sent",
                             steps_, epsilon_spent(options_, steps_), options_.delta,
                             options_.epsilon.value_or(0)));
  }
  if (const auto bad = host_ops().count_non_finite(gradient); bad.count > 0) {
    return fault(Fault::non_finite,
                 fmt::format("the gradient has {} of {} elements that are not finite, the first at "
                             "{}",
                             bad.count, gradient.size(), bad.first));
  }
  mechanism_.release(steps_, gradient, released_);
  ++steps_;
  return inner().take_gradient(released_);
}

void PrivateGradient::save(ByteBuffer& out) const {
  for (const double value :
       {options_.clip_norm, options_.noise_multiplier, options_.sampling_rate, options_.batch}) {
    out.write(value);
  }
  out.write(steps_);
  inner().save(out);
}

Status PrivateGradient::load(ByteReader& in) {
  for (const double value :
       {options_.clip_norm, options_.noise_multiplier, options_.sampling_rate, options_.batch}) {
    if (in.read<double>() != value) {
      return {Fault::malformed, "the state was saved under other privacy settings"};
    }
  }
  spend_at_least(in.read<std::uint64_t>());
  return inner().load(in);
}

}  // namespace sotto
