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

constexpr const char* kAdamRate = "0.001";

/// What is considered unasked.
struct Family {
  std::string_view algorithm;
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

/// All algorithms whose facts say that plans try them.
std::vector<Family> families(const Scenario& scenario) {
  std::vector<Family> found;
  for (const AlgorithmInfo& info : algorithms()) {
    if (!info.planned_compressors.empty() && info.robust == scenario.attack.has_value()) {
      found.push_back(
          {info.name, {info.planned_compressors.begin(), info.planned_compressors.end()}});
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
    const MoreSettings rate = adam_rate(scenario);
    settings.insert(settings.end(), rate.begin(), rate.end());
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
  std::vector<Family> known = families(scenario);
  if (lists.algorithms.empty()) {
    return known;
  }
  std::vector<Family> chosen;
  for (const std::string& spec : lists.algorithms) {
    const AlgorithmInfo& info = algorithm_info(spec);
    const auto family = std::ranges::find(known, info.name, &Family::algorithm);
    chosen.push_back({spec, family == known.end()
                                ? std::vector{std::string(info.default_compressor)}
                                : family->compressors});
  }
  return chosen;
}

bool needs_adam(const std::string& algorithm) {
  return algorithm_info(algorithm).step_rules.only == "adam";
}

}  // namespace

RunSpec with_settings(RunSpec run, const MoreSettings& settings) {
  for (const RunSetting& setting : settings) {
    run = run.with(setting.name, setting.value);
  }
  return run;
}

MoreSettings adam_rate(const Scenario& scenario) {
  return scenario.task.lr ? MoreSettings{{"lr", kAdamRate}} : MoreSettings{};
}

bool tries_adam(const CandidateLists& lists, const Scenario& scenario) {
  const std::string rule = scenario.task.step_rule;
  return (rule.empty() || rule == "sgd") && scenario.task.momentum.value_or(0) == 0 &&
         !scenario.task.quasi_global_momentum &&
         (lists.algorithms.empty() ||
          std::any_of(lists.algorithms.begin(), lists.algorithms.end(), needs_adam));
}

bool tries_batch_shares(const Scenario& scenario) {
  if (scenario.attack || scenario.sampling.clients != nullptr ||
      !scenario.task.batch_share.empty()) {
    return false;
  }
  const auto seconds = [](const NodeSpec& node) { return mean_seconds(node.compute); };
  const auto [least, most] = std::ranges::minmax(scenario.node_specs, {}, seconds);
  return seconds(least) > 0 && seconds(least) < kShorter * seconds(most);
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
    const AlgorithmInfo& info = algorithm_info(method.algorithm);
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
