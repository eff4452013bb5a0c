// How much the rounds of a site count that takes fewer steps than others, and the names of that.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sotto::sites {

/// Weight of a round of H_i steps that moved the model by Δ.
enum class StepWeighting : std::uint8_t {
  work,  ///< Δ as it is: with unlike data sites count by their steps
  equal,  ///< τ/H_i Δ: sites count alike, with τ the mean of the steps of the site and of those it
          ///< hears (τ_eff of FedNova, Wang et al. 2020, arXiv:2007.07481)
};

/// The name of a weighting.
constexpr std::string_view name_of(StepWeighting weighting) {
  return weighting == StepWeighting::work ? "work" : "equal";
}

/// The weighting of this name, if there is one.
constexpr std::optional<StepWeighting> weighting_named(std::string_view name) {
  for (const StepWeighting weighting : {StepWeighting::work, StepWeighting::equal}) {
    if (name_of(weighting) == name) {
      return weighting;
    }
  }
  return std::nullopt;
}

}  // namespace sotto::sites
