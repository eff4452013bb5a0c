#include <sotto/optim/privacy/privacy_options.h>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

constexpr auto kPrivacyUnits = {PrivacyUnit::example, PrivacyUnit::update};

void require_privacy(bool fits, std::string_view field, double value, std::string_view remedy) {
  if (!fits) {
    refuse(field, fmt::to_string(value), remedy);
  }
}

}  // namespace

std::string_view privacy_unit_name(PrivacyUnit unit) {
  return unit == PrivacyUnit::example ? "example" : "update";
}

std::vector<std::string> privacy_unit_names() {
  std::vector<std::string> names;
  for (const PrivacyUnit unit : kPrivacyUnits) {
    names.emplace_back(privacy_unit_name(unit));
  }
  return names;
}

PrivacyUnit parse_privacy_unit(std::string_view name) {
  for (const PrivacyUnit unit : kPrivacyUnits) {
    if (name == privacy_unit_name(unit)) {
      return unit;
    }
  }
  refuse("privacy_unit", name, "it is example or update");
}

std::string told_before_text(const std::vector<GaussianStep>& before) {
  std::string text;
  for (const GaussianStep& step : before) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", step.noise_multiplier);
  }
  return text;
}

void check_privacy_ranges(const PrivacyOptions& o) {
  require_privacy(o.clip_norm > 0 && o.clip_norm <= 1e30, "clip_norm", o.clip_norm,
                  "noise hides a bounded influence only: it must be positive, e.g. 1");
  require_privacy(o.noise_multiplier >= kLeastNoiseMultiplier && o.noise_multiplier <= 1e6,
                  "noise_multiplier", o.noise_multiplier,
                  "it must be 0.001 to 1000000; 0.5 to 5 are usual");
  require_privacy(o.delta > 0 && o.delta < 1, "privacy_delta", o.delta,
                  "it must lie between 0 and 1, and well below 1 / examples");
  require_privacy(!o.epsilon || (*o.epsilon > 0 && *o.epsilon <= 1000), "privacy_epsilon",
                  o.epsilon.value_or(0), "it must be above 0 and at most 1000; 1 to 8 are usual");
  const bool samples = o.unit == PrivacyUnit::example;
  require_privacy(
      samples ? o.sampling_rate > 0 && o.sampling_rate <= 1 : o.sampling_rate == 1, "sampling_rate",
      o.sampling_rate,
      samples ? "it is a probability above 0" : "a whole update is not sampled: it must be 1");
  require_privacy(
      samples ? o.batch > 0 && o.batch <= kMostPrivateBatch : o.batch == 1, "batch", o.batch,
      samples ? "it must be above 0 and at most 4096" : "a whole update is one: it must be 1");
}

void check_privacy(const PrivacyOptions& o) {
  check_privacy_ranges(o);
  if (allowed_steps(o) == 0 && !o.before.empty()) {
    refuse(
        "privacy_epsilon", fmt::to_string(*o.epsilon),
        fmt::format("what was told of the data before, the scaling of columns, costs {:.4g}, and "
                    "with one step {:.4g}; take a larger noise multiplier or epsilon",
                    epsilon_spent(o, 0), epsilon_spent(o, 1)));
  }
  if (allowed_steps(o) == 0) {
    refuse("privacy_epsilon", fmt::to_string(*o.epsilon),
           fmt::format("one step alone costs {:.4g}; take a larger noise multiplier or epsilon",
                       epsilon_spent(o, 1)));
  }
}

std::uint64_t allowed_steps(const PrivacyOptions& options) {
  return options.epsilon
             ? steps_within(options.step(), *options.epsilon, options.delta, options.before)
             : kUnlimitedSteps;
}

double epsilon_spent(const PrivacyOptions& options, std::uint64_t steps) {
  PrivacyAccountant accountant;
  for (const GaussianStep& earlier : options.before) {
    accountant.add(earlier, 1);
  }
  accountant.add(options.step(), steps);
  return accountant.epsilon(options.delta);
}

}  // namespace sotto
