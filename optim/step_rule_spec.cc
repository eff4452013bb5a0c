#include <sotto/optim/step_rule_spec.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/number.h>
#include <sotto/base/text.h>

namespace sotto {
namespace {

constexpr const char* kExample = "1d=adamw";

/// A setting that rules behind selectors may be given.
struct Key {
  std::string_view name;
  bool every_rule;  ///< every rule has this setting
  /// The value in its one form, which `set` takes; empty for what is none.
  std::string (*read)(std::string_view value);
  void (*set)(StepRuleOptions& options, std::string_view value);
};

std::string read_number(std::string_view value) {
  const auto number = parse_number<double>(value);
  return number && std::isfinite(*number) ? fmt::to_string(*number) : std::string();
}

std::string read_switch(std::string_view value) {
  return value == "true" || value == "false" ? std::string(value) : std::string();
}

std::string read_word(std::string_view value) { return std::string(value); }

template <double StepRuleOptions::*member>
void set_number(StepRuleOptions& options, std::string_view value) {
  options.*member = *parse_number<double>(value);
}

constexpr auto kKeys = std::to_array<Key>({
    {"lr", true, read_number, set_number<&StepRuleOptions::learning_rate>},
    {"weight_decay", true, read_number, set_number<&StepRuleOptions::weight_decay>},
    {"momentum", false, read_number, set_number<&StepRuleOptions::momentum>},
    {"nesterov", false, read_switch,
     [](StepRuleOptions& options, std::string_view value) { options.nesterov = value == "true"; }},
    {"beta1", false, read_number, set_number<&StepRuleOptions::beta1>},
    {"beta2", false, read_number, set_number<&StepRuleOptions::beta2>},
    {"epsilon", false, read_number, set_number<&StepRuleOptions::epsilon>},
    {"bias_correction", false, read_word,
     [](StepRuleOptions& options, std::string_view value) {
       options.bias_correction = parse_bias_correction(value);
     }},
    {"update_scale", false, read_word,
     [](StepRuleOptions& options, std::string_view value) {
       options.update_scale = parse_update_scale(value);
     }},
});

std::string underscored(std::string_view name) {
  std::string field(name);
  std::ranges::replace(field, '-', '_');
  return field;
}

StepRuleSetting read_setting(const StepRuleInfo& info, std::string_view piece,
                             std::string_view spec, std::string_view field) {
  const std::size_t equals = piece.find('=');
  const std::string name = underscored(trimmed(piece.substr(0, equals)));
  const auto* const key = std::ranges::find(kKeys, name, &Key::name);
  if (equals == std::string_view::npos || key == kKeys.end() ||
      !(key->every_rule || info.has(name))) {
    std::vector<std::string> known;
    for (const Key& one : kKeys) {
      if (one.every_rule || info.has(one.name)) {
        known.push_back(dashed(one.name));
      }
    }
    refuse(field, spec,
           fmt::format("settings of {} are written KEY=VALUE, where KEY is one of {}", info.name,
                       fmt::join(known, ", ")));
  }
  const std::string value = key->read(trimmed(piece.substr(equals + 1)));
  if (value.empty()) {
    refuse(field, spec, fmt::format("{} takes no such value", dashed(name)));
  }
  return {name, value};
}

SelectedStepRule read_selected(std::string_view spec, std::string_view field) {
  const std::size_t colon = spec.find(':');
  SelectedStepRule selected;
  selected.info = &step_rule_info(trimmed(spec.substr(0, colon)), field);
  std::string_view rest =
      colon == std::string_view::npos ? std::string_view() : spec.substr(colon + 1);
  while (colon != std::string_view::npos) {
    const std::size_t comma = rest.find(',');
    StepRuleSetting setting = read_setting(*selected.info, rest.substr(0, comma), spec, field);
    if (std::ranges::find(selected.settings, setting.first, &StepRuleSetting::first) !=
        selected.settings.end()) {
      refuse(field, spec, fmt::format("{} is given twice", dashed(setting.first)));
    }
    selected.settings.push_back(std::move(setting));
    if (comma == std::string_view::npos) {
      break;
    }
    rest.remove_prefix(comma + 1);
  }
  return selected;
}

void require_separable(const StepRuleInfo& info, std::string_view field) {
  if (!info.separable) {
    refuse(field, info.name,
           fmt::format("it goes by the whole model, and takes no tensors that are selected for it; "
                       "{} do",
                       word_list(names_with(step_rules(), &StepRuleInfo::separable), "and")));
  }
}

}  // namespace

StepRuleOptions SelectedStepRule::options(const StepRuleOptions& common) const {
  StepRuleOptions own = common;
  own.rule = info->name;
  own.learning_rate = info->learning_rate;
  own.momentum = info->momentum;
  own.nesterov = info->nesterov;
  for (const auto& [name, value] : settings) {
    std::ranges::find(kKeys, name, &Key::name)->set(own, value);
  }
  return own;
}

std::string StepRuleSpec::text() const {
  std::string text(info->name);
  for (std::size_t k = 0; chosen && k < selected.size(); ++k) {
    text += fmt::format("; {}={}", selectors[k].selector.text(), selected[k].info->name);
    const char* before = ":";
    for (const auto& [name, value] : selected[k].settings) {
      text += fmt::format("{}{}={}", before, dashed(name), value);
      before = ",";
    }
  }
  return text;
}

bool StepRuleSpec::has(std::string_view setting) const {
  return info->has(setting) || std::ranges::any_of(selected, [&](const SelectedStepRule& rule) {
           return rule.info->has(setting);
         });
}

std::vector<std::string> StepRuleSpec::names() const {
  std::vector<std::string> names = {std::string(info->name)};
  for (const SelectedStepRule& rule : selected) {
    if (std::ranges::find(names, rule.info->name) == names.end()) {
      names.emplace_back(rule.info->name);
    }
  }
  return names;
}

std::vector<double> multiply_adds_of_step(const StepRuleSpec& spec, const ParameterLayout& layout) {
  const auto rules = rule_of_each(spec.selectors, layout, "step_rule");
  std::vector<double> by_tensor(layout.size());
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const bool in_front = rules[i] == spec.selected.size();
    const StepRuleInfo& info = in_front ? *spec.info : *spec.selected[rules[i]].info;
    by_tensor[i] = info.multiply_adds == nullptr ? 0 : info.multiply_adds(layout[i]);
  }
  return by_tensor;
}

StepRuleSpec parse_step_rule(std::string_view spec, std::string_view field) {
  SpecByTensor read = read_spec_by_tensor(spec, field, kExample);
  StepRuleSpec parsed;
  if (const std::size_t colon = read.otherwise.find(':'); colon != std::string::npos) {
    const StepRuleInfo& info = step_rule_info(read.otherwise.substr(0, colon), field);
    refuse(field, spec,
           fmt::format("the settings of {}, the rule in front, are those of the optimizer: ",
                       info.name) +
               mention("lr") + " and the like; only rules behind selectors have their own");
  }
  parsed.info = &step_rule_info(read.otherwise, field);
  parsed.chosen = !read.rules.empty();
  if (!parsed.chosen && !parsed.info->others.empty()) {
    read = read_spec_by_tensor(fmt::format("{}; {}", parsed.info->name, parsed.info->others), field,
                               kExample);
  }
  for (const SelectedSpec& rule : read.rules) {
    parsed.selected.push_back(read_selected(rule.spec, field));
    require_separable(*parsed.selected.back().info, field);
  }
  if (!read.rules.empty()) {
    require_separable(*parsed.info, field);
  }
  parsed.selectors = std::move(read.rules);
  return parsed;
}

}  // namespace sotto
