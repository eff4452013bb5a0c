#include <sotto/trainers/settings/privacy_settings.h>

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {

PrivacyUnit privacy_unit_of(const OptimizerSettings& settings) {
  return settings.privacy_unit.empty() ? PrivacyUnit::example
                                       : parse_privacy_unit(settings.privacy_unit);
}

std::optional<PrivacyOptions> privacy_of(const OptimizerSettings& settings,
                                         const PoissonSample& sample, Round rounds,
                                         const std::vector<GaussianStep>& before) {
  if (!wants_privacy(settings)) {
    return std::nullopt;
  }
  PrivacyOptions made;
  made.unit = privacy_unit_of(settings);
  made.clip_norm = settings.clip_norm.value_or(0);
  made.sampling_rate = sample.rate;
  made.batch = sample.batch;
  made.before = before;
  made.epsilon = settings.privacy_epsilon;
  made.delta = settings.privacy_delta.value_or(made.delta);
  made.test_seed = settings.privacy_seed;
  made.noise_multiplier = settings.noise_multiplier.value_or(1);
  check_privacy_ranges(made);
  if (!settings.noise_multiplier) {
    if (rounds == 0) {
      throw Error("privacy_epsilon",
                  "how much noise it takes depends on the number of rounds: give " +
                      mention("rounds") + ", or " + mention("noise_multiplier"));
    }
    if (const double spent = epsilon_spent(made, 0); !before.empty() && spent >= *made.epsilon) {
      throw Error("privacy_epsilon", fmt::format("{} leaves nothing to train with: the scaling of "
                                                 "columns has cost {:.4g} already",
                                                 *made.epsilon, spent));
    }
    // A generous budget may need less than is allowed.
    made.noise_multiplier = std::max(
        kLeastNoiseMultiplier,
        noise_multiplier_for(*made.epsilon, made.delta, made.sampling_rate, rounds, before));
  }
  check_privacy(made);
  return made;
}

}  // namespace sotto
