// Resolves the settings of differential privacy (docs/privacy.md), for the program and for other
// languages alike. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/optim/privacy/privacy_options.h>
#include <sotto/trainers/settings/optimizer_settings.h>

namespace sotto {

/// The Poisson sample of which the caller adds up the clipped gradients; only with
/// PrivacyUnit::example.
struct PoissonSample {
  double rate = 1;
  double batch = 1;  ///< the divisor of the sum of gradients
};

/// The warning about the setting privacy-seed.
inline constexpr std::string_view kSeedHidesNothing =
    "NOTHING IS HIDDEN: whoever knows the seed can subtract the noise; leave it out wherever the "
    "data matter";

/// The unit that is asked for; by default an example.
PrivacyUnit privacy_unit_of(const OptimizerSettings& settings);

/// The mechanism that is asked for, without a ledger; none unless wants_privacy(settings). With ε
/// alone the noise is chosen for `rounds` rounds. Requires settings that check_settings takes.
/// What was told of the data `before` counts too. Throws Error for a setting out of range, before
/// any computation.
std::optional<PrivacyOptions> privacy_of(const OptimizerSettings& settings,
                                         const PoissonSample& sample, Round rounds,
                                         const std::vector<GaussianStep>& before = {});

}  // namespace sotto
