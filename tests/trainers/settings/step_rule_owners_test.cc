// Which step rule has which setting is said by the rules' own facts: settings, helps and refusals
// follow them.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/optim/step_rule_spec.h>
#include <sotto/trainers/settings/optimizer_settings.h>

namespace sotto::test::step_rule_owners_test {

namespace {

/// A value of each owned setting that is not its default.
constexpr auto kOther = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"momentum", "0.5"},
    {"nesterov", "true"},
    {"beta1", "0.8"},
    {"beta2", "0.9"},
    {"epsilon", "1e-6"},
    {"bias_correction", "never"},
    {"trust_coefficient", "0.01"},
    {"update_scale", "spectral"},
});

std::string refusal(const std::string& rule, std::string_view name, std::string_view value) {
  OptimizerSettings settings;
  settings.step_rule = rule;
  REQUIRE(set(settings_of(settings), name, value));
  try {
    check_settings(settings);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("every setting that a step rule has is a setting of the optimizer, whose help names it") {
  OptimizerSettings settings;
  const SettingGroup group = step_settings(settings);
  for (const StepRuleInfo& rule : step_rules()) {
    for (const std::string_view name : rule.settings) {
      CAPTURE(name);
      const auto found = std::ranges::find(group.settings, name, &field_of);
      REQUIRE(found != group.settings.end());
      CHECK(found->help.find(rule.name) != std::string_view::npos);
      // A new one gets a value above.
      CHECK(std::ranges::count(kOther, name, [](const auto& one) { return one.first; }) == 1);
    }
  }
}

TEST_CASE("a setting is refused with every step rule that has it not, and taken with the others") {
  for (const auto& [name, value] : kOther) {
    CAPTURE(name);
    const auto owners = step_rules_with(name);
    REQUIRE_FALSE(owners.empty());
    for (const StepRuleInfo& rule : step_rules()) {
      CAPTURE(rule.name);
      const std::string why = refusal(std::string(rule.name), name, value);
      const bool has = rule.has(name) || (parse_step_rule(rule.name).has(name) &&
                                          name != "momentum" && name != "nesterov");
      CHECK(why.empty() == has);
      const bool own_words = name == "momentum";  // the rule itself refuses it
      if (!has && !own_words) {
        CHECK(why.find(word_list(owners)) != std::string::npos);
      }
    }
  }
}

TEST_CASE("a momentum of 0 is taken with every step rule") {
  for (const StepRuleInfo& rule : step_rules()) {
    CAPTURE(rule.name);
    CHECK(refusal(std::string(rule.name), "momentum", "0").empty());
  }
}

TEST_CASE("a quasi-global momentum is the rule and its momentum in one") {
  OptimizerSettings settings;
  settings.algorithm = "dpsgd";
  REQUIRE(set(settings_of(settings), "quasi-global-momentum", "0.8"));
  CHECK_NOTHROW(check_settings(settings));
  CHECK(step_rule_of(settings, 10).rule == "quasi-global");
  CHECK(step_rule_of(settings, 10).momentum == 0.8);
  CHECK(refusal("quasi-global", "quasi_global_momentum", "0.8").empty());
  CHECK(refusal("sgd", "quasi_global_momentum", "0.8").find("leave out") != std::string::npos);
  CHECK_FALSE(refusal("quasi-global", "quasi_global_momentum", "1.5").empty());
  settings.momentum = 0.8;
  CHECK_THROWS_AS(check_settings(settings), Error);
}

TEST_CASE("default learning rates and momenta are those of the rules") {
  for (const StepRuleInfo& rule : step_rules()) {
    CAPTURE(rule.name);
    OptimizerSettings settings;
    settings.step_rule = rule.name;
    CHECK(step_rule_of(settings, 10).learning_rate == rule.learning_rate);
    CHECK(step_rule_of(settings, 10).momentum == rule.momentum);
    CHECK(step_rule_of(settings, 10).nesterov == rule.nesterov);
    settings.step_rule.clear();
    settings.algorithm = "allreduce";
    settings.outer_step_rule = rule.name;
    CHECK(options_of(settings, 10).outer_step_rule->learning_rate == rule.outer_learning_rate);
    CHECK(options_of(settings, 10).outer_step_rule->momentum == rule.momentum);
  }
}

}  // namespace sotto::test::step_rule_owners_test
