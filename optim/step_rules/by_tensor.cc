#include <sotto/optim/step_rules/by_tensor.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <sotto/base/check.h>
#include <sotto/optim/state_io.h>

namespace sotto {
namespace {

/// Appends one tensor behind the others of `layout`.
void append(ParameterLayout& layout, ParameterBlock tensor) {
  tensor.offset = dimension_of(layout);
  layout.push_back(std::move(tensor));
}

}  // namespace

RulesByTensor::RulesByTensor(StepRuleSpec spec, const StepRuleOptions& options, const Ops& ops)
    : spec_(std::move(spec)),
      name_(spec_.text()),
      clip_(options.clip_norm, ops),
      base_rate_(options.learning_rate) {
  StepRuleOptions common = options;
  common.clip_norm = std::numeric_limits<double>::infinity();
  const auto add = [&](const StepRuleInfo& info, const StepRuleOptions& own) {
    rates_.push_back(own.learning_rate);
    rules_.push_back(info.build(own, ops));
  };
  for (const SelectedStepRule& selected : spec_.selected) {
    const StepRuleOptions own = selected.options(common);
    check_step_rule_options(own);
    add(*selected.info, own);
  }
  common.rule = spec_.info->name;
  add(*spec_.info, common);
}

RulesByTensor::RulesByTensor(StepRuleSpec spec, const StepRuleOptions& options, const Ops& ops,
                             RulesOfPart part)
    : RulesByTensor(std::move(spec), options, ops) {
  part_ = std::move(part);
}

void RulesByTensor::resize(const ParameterLayout& layout) {
  const auto numbers =
      part_ ? part_->of_tensors : rule_of_each(spec_.selectors, layout, "step_rule");
  check(numbers.size() == layout.size(), "each tensor of a part of a model has a rule");
  std::vector<ParameterLayout> own(rules_.size());
  runs_.clear();
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const std::size_t rule = numbers[i];
    const std::size_t at = dimension_of(own[rule]);
    if (runs_.empty() || runs_.back().rule != rule) {
      runs_.push_back({layout[i].offset, 0, rule, at});
    }
    runs_.back().size += layout[i].size;
    append(own[rule], layout[i]);
  }
  for (std::size_t rule = 0; rule < rules_.size(); ++rule) {
    const bool all_elsewhere = own[rule].empty() && part_ && part_->elsewhere[rule];
    if (!all_elsewhere) {  // a rule without tensors in the whole model may be a mistake
      rules_[rule]->resize(own[rule]);
    }
  }
}

Status RulesByTensor::direction(Round round, std::span<const float> x,
                                std::span<const float> gradient, std::span<float> d) {
  begin_parts(round);
  if (!clip_.clips()) {
    return direction_part(0, x, gradient, d);
  }
  clip_.take(gradient, d);
  return direction_part(0, x, d, d);
}

void RulesByTensor::begin_parts(Round round) {
  for (const auto& rule : rules_) {
    rule->begin_parts(round);
  }
}

Status RulesByTensor::direction_part(std::size_t first, std::span<const float> x,
                                     std::span<const float> gradient, std::span<float> d) {
  const std::size_t end = first + d.size();
  for (const Run& run : runs_) {
    const std::size_t from = std::max(first, run.offset);
    const std::size_t to = std::min(end, run.offset + run.size);
    if (from >= to) {
      continue;
    }
    const auto part = [&](auto whole) { return whole.subspan(from - first, to - from); };
    Status status = rules_[run.rule]->direction_part(run.own_offset + (from - run.offset), part(x),
                                                     part(gradient), part(d));
    if (!status.ok()) {
      return status;
    }
  }
  return {};
}

bool RulesByTensor::takes_any_part() const {
  return separable() &&
         std::ranges::all_of(rules_, [](const auto& rule) { return rule->takes_any_part(); });
}

bool RulesByTensor::follows_model() const {
  return std::ranges::any_of(rules_, [](const auto& rule) { return rule->follows_model(); });
}

void RulesByTensor::set_learning_rate(double learning_rate) {
  constexpr double kMost = std::numeric_limits<float>::max();
  for (std::size_t rule = 0; base_rate_ > 0 && rule + 1 < rules_.size(); ++rule) {
    const double own = rates_[rule] * (learning_rate / base_rate_);
    rules_[rule]->set_learning_rate(std::min(own, kMost));
  }
  rules_.back()->set_learning_rate(learning_rate);
}

void RulesByTensor::save(ByteBuffer& out) const {
  out.write_string(name_);
  for (const auto& rule : rules_) {
    rule->save(out);
  }
}

Status RulesByTensor::load(ByteReader& in) {
  Status status = expect_name(in, "step rule", name_);
  for (const auto& rule : rules_) {
    if (status.ok()) {
      status = rule->load(in);
    }
  }
  return status;
}

std::unique_ptr<StepRule> make_step_rule_of_part(const StepRuleOptions& options,
                                                 const ParameterLayout& whole,
                                                 std::span<const std::size_t> tensors,
                                                 const Ops& ops) {
  check_step_rule_options(options);
  StepRuleSpec spec = parse_step_rule(options.rule);
  if (spec.selected.empty()) {
    return make_step_rule(options, ops);
  }
  const auto rules = rule_of_each(spec.selectors, whole, "step_rule");
  RulesOfPart part = {.of_tensors = {}, .elsewhere = std::vector(spec.selected.size() + 1, false)};
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (std::ranges::binary_search(tensors, i)) {
      part.of_tensors.push_back(rules[i]);
    } else {
      part.elsewhere[rules[i]] = true;
    }
  }
  return std::make_unique<RulesByTensor>(std::move(spec), options, ops, std::move(part));
}

}  // namespace sotto
