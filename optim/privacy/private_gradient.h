// An algorithm behind the Gaussian mechanism: it never sees a gradient, only the noisy one.
//
// The gradient is the only thing that an algorithm learns of a node's data (algorithm.h). With the
// mechanism in front of it, models, messages, error buffers, moments and replicas are all
// post-processing, so that every algorithm, compressor and graph keeps the promise, with local
// steps too. Steps are counted, a step beyond the budget is refused, and the count is part of the
// saved state.
//
// Thread safety and ownership: as Algorithm; owns the inner one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <sotto/optim/forwarding_algorithm.h>
#include <sotto/optim/privacy/gaussian_mechanism.h>
#include <sotto/optim/privacy/privacy_options.h>

namespace sotto {

class PrivateGradient final : public ForwardingAlgorithm {
 public:
  /// Throws Error for options that check_privacy refuses.
  PrivateGradient(std::unique_ptr<Algorithm> inner, const PrivacyOptions& options, Rank rank);

  /// Steps that have left, or may have.
  std::uint64_t steps() const { return steps_; }
  /// Steps that the budget allows in all.
  std::uint64_t allowed() const { return allowed_; }
  /// Counts at least so many steps from now on, e.g. those of a run that was lost.
  void spend_at_least(std::uint64_t steps);

  /// Fault::budget when the step would cost more than is left; nothing has changed then, as with a
  /// gradient that is not finite. Any other gradient counts as a step.
  Status take_gradient(std::span<const float> gradient) override;
  void save(ByteBuffer& out) const override;
  /// Never lowers steps().
  Status load(ByteReader& in) override;

 private:
  Status fault(Fault kind, std::string_view message) const;

  PrivacyOptions options_;
  Rank rank_;
  std::uint64_t allowed_;
  GaussianMechanism mechanism_;
  std::uint64_t steps_ = 0;
  std::vector<float> released_;
};

}  // namespace sotto
