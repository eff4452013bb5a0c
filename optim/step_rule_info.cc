#include <sotto/optim/step_rule_info.h>

#include <algorithm>
#include <array>

#include <sotto/base/names.h>
#include <sotto/optim/step_rules/adam.h>
#include <sotto/optim/step_rules/lamb.h>
#include <sotto/optim/step_rules/lars.h>
#include <sotto/optim/step_rules/muon.h>
#include <sotto/optim/step_rules/quasi_global.h>
#include <sotto/optim/step_rules/sgd.h>

namespace sotto {

bool StepRuleInfo::has(std::string_view setting) const {
  return std::ranges::find(settings, setting) != settings.end();
}

std::span<const StepRuleInfo> step_rules() {
  // clang-format off
  static const std::array all = {
      Sgd::kInfo,
      Adam::kAdam,
      Adam::kAdamW,
      Lars::kInfo,
      Lamb::kInfo,
      QuasiGlobal::kInfo,
      Muon::kInfo,
  };
  // clang-format on
  return all;
}

const StepRuleInfo& step_rule_info(std::string_view name, std::string_view field) {
  for (const StepRuleInfo& info : step_rules()) {
    if (info.name == name) {
      return info;
    }
  }
  refuse_unknown(field, name, names_of(step_rules()));
}

std::vector<std::string> step_rules_with(std::string_view setting) {
  return names_with(step_rules(), [&](const StepRuleInfo& info) { return info.has(setting); });
}

}  // namespace sotto
