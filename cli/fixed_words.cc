#include "fixed_words.h"

#include <algorithm>
#include <array>

#include <sotto/base/names.h>
#include <sotto/optim/privacy/privacy_options.h>
#include <sotto/optim/schedule.h>
#include <sotto/optim/step_rule_info.h>
#include <sotto/topology/registry.h>
#include <sotto/trainers/data/partition.h>
#include <sotto/trainers/optimizer.h>

namespace sotto::cli {
namespace {

struct WordsOfOption {
  std::string_view option;
  std::vector<std::string> (*words)();
};

std::vector<std::string> step_rule_names() { return names_of(step_rules()); }

constexpr auto kWordsOfOptions = std::to_array<WordsOfOption>({
    {"--step-rule", step_rule_names},
    {"--outer-step-rule", step_rule_names},
    {"--weighting", weighting_names},
    {"--bias-correction", bias_correction_names},
    {"--update-scale", update_scale_names},
    {"--schedule", schedule_names},
    {"--partition", partition_names},
    {"--privacy-unit", privacy_unit_names},
    {"--join", join_names},
});

}  // namespace

std::vector<std::string> fixed_words(std::string_view option) {
  const auto* const found = std::ranges::find(kWordsOfOptions, option, &WordsOfOption::option);
  return found == kWordsOfOptions.end() ? std::vector<std::string>() : found->words();
}

}  // namespace sotto::cli
