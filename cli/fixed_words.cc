#include "fixed_words.h"

#include <algorithm>
#include <array>

namespace sotto::cli {

std::vector<std::string> fixed_words(std::string_view option) {
  struct Fixed {
    std::string_view option;
    std::vector<std::string> words;
  };
  static const std::vector<std::string> kStepRules = {"sgd", "adam", "adamw", "lars", "lamb"};
  static const std::array<Fixed, 8> kFixed = {{
      {"--step-rule", kStepRules},
      {"--outer-step-rule", kStepRules},
      {"--weighting", {"metropolis", "uniform", "shares"}},
      {"--bias-correction", {"always", "warmup", "never"}},
      {"--schedule", {"constant", "step", "cosine", "invsqrt"}},
      {"--partition", {"iid", "dirichlet", "label", "sizes"}},
      {"--privacy-unit", {"example", "update"}},
      {"--join", {"stop", "zeros"}},
  }};
  const auto* const found = std::find_if(kFixed.begin(), kFixed.end(),
                                         [&](const Fixed& one) { return one.option == option; });
  return found == kFixed.end() ? std::vector<std::string>() : found->words;
}

}  // namespace sotto::cli
