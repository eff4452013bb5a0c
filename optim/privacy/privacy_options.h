// What a node hides, and how well: the settings of the Gaussian mechanism in front of an algorithm.
// Plain values; pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/optim/privacy/accountant.h>

namespace sotto {

/// The data that one dataset has and its neighbour lacks: the presence of this unit is hidden.
enum class PrivacyUnit {
  example,  ///< one training example of the node; the caller clips and samples (DP-SGD)
  update,   ///< all data of the node; the whole gradient is clipped here
};

/// "example" or "update".
std::string_view privacy_unit_name(PrivacyUnit unit);
/// The names that parse_privacy_unit takes.
std::vector<std::string> privacy_unit_names();
/// Throws Error unless `name` is example or update.
PrivacyUnit parse_privacy_unit(std::string_view name);

struct PrivacyOptions {
  PrivacyUnit unit = PrivacyUnit::update;
  /// C: no unit moves the sum that is released by more than this Euclidean norm.
  double clip_norm = 0;
  double noise_multiplier = 0;  ///< σ: the noise added to that sum has deviation σ C
  /// Only with PrivacyUnit::example: the gradient that the node gives is
  ///   (1 / batch) Σ_{k ∈ sample} min(1, C / ‖g_k‖) g_k   (clipped_sum.h),
  /// the sample being a Poisson sample of this rate whose coins are secret.
  double sampling_rate = 1;
  double batch = 1;
  /// Releases of the data before the first step, each once, as by sums that scale columns
  /// (private_moments.h). It counts.
  std::vector<GaussianStep> before = {};
  /// Once another step would cost more than (ε, δ) nothing leaves any more; unset: ε is only told.
  std::optional<double> epsilon = {};
  double delta = 1e-5;
  /// Takes the noise from this seed, which hides nothing. For tests and simulations.
  std::optional<std::uint64_t> test_seed = {};
  /// File that holds the budget spent, independent of checkpoints
  /// (trainers/files/privacy_ledger.h); empty: none.
  std::string ledger = {};

  GaussianStep step() const { return {noise_multiplier, sampling_rate}; }
};

/// Noise multipliers of what was told before, with commas between them; each is of a step on all
/// data.
std::string told_before_text(const std::vector<GaussianStep>& before);

/// The largest expected batch of PrivacyUnit::example: beyond it float32's rounding of a sum is no
/// longer small against one example (gaussian_mechanism.h).
inline constexpr double kMostPrivateBatch = 4096;

/// The least noise that is chosen for a budget: less of it promises nothing.
inline constexpr double kLeastNoiseMultiplier = 1e-3;

/// Throws Error for a setting outside its range. What is computed from settings requires it.
void check_privacy_ranges(const PrivacyOptions& options);
/// Checks as check_privacy_ranges does; throws Error also when the budget does not allow a single
/// step.
void check_privacy(const PrivacyOptions& options);

/// Steps that the budget allows; kUnlimitedSteps without one.
std::uint64_t allowed_steps(const PrivacyOptions& options);

/// ε at options.delta after what was told before and `steps` steps.
double epsilon_spent(const PrivacyOptions& options, std::uint64_t steps);

}  // namespace sotto
