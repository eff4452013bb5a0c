#include <sotto/study/plan/plan_proposals.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/names.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/common_hyperparameters.h>
#include <sotto/optim/registry.h>
#include <sotto/study/plan/plan_candidate.h>
#include <sotto/study/scenario/batch_speeds.h>
#include <sotto/topology/registry.h>

namespace sotto::study {
namespace {

/// What is considered unasked.
struct Family {
  const AlgorithmInfo* info;
  std::string algorithm;  ///< its specification
  std::vector<std::string> compressors;
};

/// Rules against nodes that lie; of those with a parameter with that for `liars`.
std::vector<MoreSettings> rules(std::size_t liars) {
  std::vector<MoreSettings> all;
  for (const std::string& rule :
       {std::string("clipped:auto"), std::string("clipped:auto:1"), std::string("median"),
        std::string("geometric-median"), fmt::format("trimmed-mean:{}", liars),
        fmt::format("multi-krum:{}", liars), std::string("mean")}) {
    all.push_back({{"rule", rule}});
  }
  return all;
}

/// The algorithm as it is considered, with its usual compressors.
Family family_of(const AlgorithmInfo& info, std::string algorithm) {
  const auto specs = info.planned.compressors;
  return {&info, std::move(algorithm),
          specs.empty() ? std::vector{std::string(info.default_compressor)}
                        : std::vector<std::string>(specs.begin(), specs.end())};
}

/// All algorithms whose facts say that plans of the scenario try them.
std::vector<Family> families(const Scenario& scenario) {
  std::vector<Family> found;
  for (const AlgorithmInfo& info : algorithms()) {
    if (why_not_tried(info, scenario).empty()) {
      const std::string_view values = info.planned.hyperparameters;
      found.push_back(
          family_of(info, fmt::format("{}{}{}", info.name, values.empty() ? "" : ":", values)));
    }
  }
  return found;
}

/// Settings that a method needs and the task does not give.
MoreSettings needed_settings(const AlgorithmSpec& algorithm, const Scenario& scenario,
                             Round rounds) {
  const AlgorithmInfo& info = *algorithm.info;
  MoreSettings settings;
  const bool given = algorithm.hyperparameters.has(kFreezeStep) ||
                     (!scenario.task.freeze_step.empty() && scenario.task.freeze_step != "auto");
  if (info.has(kFreezeStep) && !given) {
    const Hyperparameter& step = *algorithm.hyperparameters.find(kFreezeStep);
    settings.push_back({dashed(step.setting), fmt::to_string(usual_freeze_step(rounds))});
  }
  const bool adam = info.step_rules.only == "adam" || info.step_rules.only == "adamw";
  if (adam && scenario.task.step_rule != info.step_rules.only) {
    const MoreSettings rate = rate_of(step_rule_info(info.step_rules.only), scenario);
    settings.insert(settings.end(), rate.begin(), rate.end());
  }
  if (info.eigenvalues_above > -1 && !scenario.task.lazy) {
    settings.push_back({"lazy", "true"});
  }
  if (info.learning_rate > 0 && scenario.task.lr) {
    settings.push_back({"lr", fmt::to_string(info.learning_rate)});
  }
  return settings;
}

/// The settings with which a method is considered.
std::vector<MoreSettings> settings_of(const AlgorithmSpec& algorithm, const Scenario& scenario,
                                      Round rounds) {
  const bool tries_rules = algorithm.info->robust && scenario.attack &&
                           scenario.task.rule.empty() && !algorithm.hyperparameters.has("rule");
  return tries_rules ? rules(scenario.attack->nodes.size())
                     : std::vector<MoreSettings>{needed_settings(algorithm, scenario, rounds)};
}

void check_lists(const CandidateLists& lists, const Scenario& scenario) {
  for (const std::string& spec : lists.algorithms) {
    (void)parse_algorithm(spec);
  }
  for (const std::string& spec : lists.compressors) {
    (void)make_compressor(spec);
  }
  for (const std::string& spec : lists.topologies) {
    (void)make_topology(spec, scenario.nodes, {.seed = scenario.task.seed});
  }
}

class Proposals {
 public:
  void add(const Proposal& proposal) {
    if (std::none_of(all_.begin(), all_.end(),
                     [&](const Proposal& one) { return one.run.name == proposal.run.name; })) {
      all_.push_back(proposal);
    }
  }
  std::vector<Proposal> all() && { return std::move(all_); }

 private:
  std::vector<Proposal> all_;
};

/// The methods that lists leave, or add.
std::vector<Family> chosen_families(const CandidateLists& lists, const Scenario& scenario) {
  if (lists.algorithms.empty()) {
    return families(scenario);
  }
  std::vector<Family> chosen;
  for (const std::string& spec : lists.algorithms) {
    chosen.push_back(family_of(algorithm_info(spec), spec));
  }
  return chosen;
}

/// The task's rule is plain sgd, in place of which others may be tried.
bool plain_sgd(const TrainOptions& task) {
  return (task.step_rule.empty() || task.step_rule == "sgd") && task.momentum.value_or(0) == 0 &&
         !task.quasi_global_momentum;
}

}  // namespace

RunSpec with_settings(RunSpec run, const MoreSettings& settings) {
  for (const RunSetting& setting : settings) {
    run = run.with(setting.name, setting.value);
  }
  return run;
}

MoreSettings rate_of(const StepRuleInfo& rule, const Scenario& scenario) {
  return scenario.task.lr ? MoreSettings{{"lr", fmt::to_string(rule.learning_rate)}}
                          : MoreSettings{};
}

std::string why_not_tried(const AlgorithmInfo& info, const Scenario& scenario) {
  if (info.robust != scenario.attack.has_value()) {
    return info.robust ? "it is for nodes that lie, and none does"
                       : "some nodes lie, and it has no defence";
  }
  if (info.planned.compressors.empty()) {
    return std::string(info.planned.why_not);
  }
  switch (info.planned.where) {
    case PlannedWhere::anywhere:
      break;
    case PlannedWhere::unlike_data:
      return scenario.task.partition == "iid" ? "it is for nodes whose data differ, and here they "
                                                "are alike"
                                              : "";
    case PlannedWhere::uneven_nodes:
      return uneven_nodes(scenario) ? ""
                                    : "it is for nodes of uneven speed, and here they are alike";
  }
  return {};
}

std::vector<const StepRuleInfo*> tried_rules(const CandidateLists& lists,
                                             const Scenario& scenario) {
  std::vector<const StepRuleInfo*> tried;
  for (const StepRuleInfo& rule : step_rules()) {
    const auto built_on_it = [&](const std::string& algorithm) {
      return algorithm_info(algorithm).step_rules.only == rule.name;
    };
    if (rule.planned && plain_sgd(scenario.task) &&
        (lists.algorithms.empty() || std::ranges::any_of(lists.algorithms, built_on_it))) {
      tried.push_back(&rule);
    }
  }
  return tried;
}

MoreSettings outer_rule(const AlgorithmInfo& info) {
  if (info.takes_outer_after_mixing() && info.contract == ContractKind::exact) {
    return {{"outer-after-mixing", "true"}, {"outer-lr", "0.7"}, {"outer-momentum", "0.5"}};
  }
  const bool common_model = info.graph == GraphNeed::any && info.step_rules.only.empty();
  return common_model && !info.local_steps.errors_as_momentum
             ? MoreSettings{{"outer-lr", "0.7"},
                            {"outer-momentum", "0.9"},
                            {"outer-nesterov", "true"}}
             : MoreSettings{};
}

bool uneven_nodes(const Scenario& scenario) {
  const auto seconds = [](const NodeSpec& node) { return mean_seconds(node.compute); };
  const auto [least, most] = std::ranges::minmax(scenario.node_specs, {}, seconds);
  return seconds(least) > 0 && seconds(least) < kShorter * seconds(most);
}

bool tries_batch_shares(const Scenario& scenario) {
  return !scenario.attack && scenario.sampling.clients == nullptr &&
         scenario.task.batch_share.empty() && uneven_nodes(scenario);
}

bool tries_quasi_global(const Scenario& scenario) {
  const std::string& rule = scenario.task.step_rule;
  return (rule.empty() || rule == "sgd") && scenario.task.momentum.value_or(0) != 0 &&
         scenario.task.partition != "iid";
}

std::vector<Proposal> proposals(const CandidateLists& lists, const Scenario& scenario,
                                const std::vector<PlannedGraph>& graphs, Round rounds) {
  check_lists(lists, scenario);
  Proposals all;
  if (!scenario.attack) {
    all.add({.run = run_of(kBaseline), .varies = true});
  }
  if (lists.empty()) {
    for (const RunSpec& run : scenario.runs) {
      all.add({.run = run, .own = true});
    }
  }
  std::vector<std::string> specs = lists.topologies;
  if (specs.empty()) {
    for (const PlannedGraph& graph : graphs) {
      specs.push_back(graph.spec);
    }
  }
  for (const Family& method : chosen_families(lists, scenario)) {
    const AlgorithmInfo& info = *method.info;
    const bool exact = info.contract == ContractKind::exact;
    const auto settings = settings_of(parse_algorithm(method.algorithm), scenario, rounds);
    for (const std::string& spec :
         lists.compressors.empty() || exact ? method.compressors : lists.compressors) {
      for (const std::string& graph : specs) {
        const RunSpec run =
            run_of(method.algorithm, exact ? "" : spec, info.graph == GraphNeed::any ? "" : graph);
        for (const MoreSettings& more : settings) {
          all.add({.run = with_settings(run, more), .varies = info.step_rules.only.empty()});
        }
      }
    }
  }
  return std::move(all).all();
}

}  // namespace sotto::study
