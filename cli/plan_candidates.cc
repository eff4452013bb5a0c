#include "plan_candidates.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/topology/analysis.h>
#include <sotto/topology/registry.h>
#include <sotto/trainers/algorithm_setup.h>

#include "nearest.h"
#include "plan_model.h"
#include "plan_pattern.h"
#include "run_words.h"
#include "train_plan.h"

namespace sotto::cli {
namespace {

/// Of graphs nearly as quick as the quickest, better mixing decides.
constexpr double kNearlyAsQuick = 1.05;
/// Beyond, everybody's talking to everybody is not considered unasked.
constexpr int kMostForComplete = 64;
/// n nodes that reduce send 2 (n − 1) n messages a round.
constexpr int kMostToAll = 500;
/// Part of the rounds before a variance is frozen, as in the papers.
constexpr double kWarmUp = 0.15;
constexpr const char* kAdamRate = "0.001";

/// What is considered unasked.
struct Family {
  std::string_view algorithm;
  std::vector<std::string> compressors;
};

std::vector<Family> families() {
  return {{"dpsgd", {"none"}},
          {"dcd", {"quant:8", "quant:4"}},
          {"choco", {"quant:8", "quant:4", "quant:2", "sign", "topk:0.05"}},
          {"deepsqueeze", {"quant:4", "sign"}},
          {"pushsum", {"quant:8"}},
          {"onebit-adam", {"sign"}}};
}

std::vector<std::string> graphs(int nodes) {
  std::vector<std::string> all = {"ring", "torus", "exponential", "one-peer-exponential"};
  if (nodes <= kMostForComplete) {
    all.emplace_back("complete");
  }
  return all;
}

/// Settings that a method needs and the task does not give.
std::string settings_of(const AlgorithmInfo& info, const Scenario& scenario, Round rounds) {
  std::string settings;
  if (info.freezing != Freezing::never && scenario.task.freeze_step == "auto") {
    const auto freeze = static_cast<Round>(kWarmUp * static_cast<double>(rounds));
    settings += fmt::format(" freeze-step={}", std::max<Round>(freeze, 1));
  }
  // A rate that was chosen for another rule would be far too large.
  if (info.step_rule == "adam" && scenario.task.step_rule != "adam" && scenario.task.lr) {
    settings += fmt::format(" lr={}", kAdamRate);
  }
  return settings;
}

void check_lists(const CandidateLists& lists) {
  for (const std::string& name : lists.algorithms) {
    refuse_mistyped("--algorithm", name, names_of(algorithms()));
    (void)algorithm_info(name);
  }
  for (const std::string& spec : lists.compressors) {
    refuse_mistyped("--compressor", spec, names_of(compressors()));
    (void)make_compressor(spec);
  }
  for (const std::string& spec : lists.topologies) {
    refuse_mistyped("--topology", spec, names_of(topologies()));
  }
}

class Words {
 public:
  void add(const std::string& words) {
    if (std::find(all_.begin(), all_.end(), words) == all_.end()) {
      all_.push_back(words);
    }
  }
  std::vector<std::string> all() && { return std::move(all_); }

 private:
  std::vector<std::string> all_;
};

}  // namespace

std::vector<std::string> candidate_words(const CandidateLists& lists, const Scenario& scenario,
                                         Round rounds) {
  check_lists(lists);
  std::vector<Family> methods = families();
  if (!lists.algorithms.empty()) {
    const auto known = std::move(methods);
    methods.clear();
    for (const std::string& name : lists.algorithms) {
      const auto family = std::find_if(known.begin(), known.end(),
                                       [&](const Family& one) { return one.algorithm == name; });
      methods.push_back(family == known.end()
                            ? Family{name, {std::string(algorithm_info(name).default_compressor)}}
                            : *family);
    }
  }
  const auto chosen = lists.topologies.empty() ? graphs(scenario.nodes) : lists.topologies;
  Words words;
  words.add("allreduce");
  for (std::size_t k = 0; lists.empty() && k < scenario.runs.size(); ++k) {
    words.add(scenario.runs[k]);
  }
  for (const Family& method : methods) {
    const AlgorithmInfo& info = algorithm_info(method.algorithm);
    const bool exact = info.contract == ContractKind::exact;
    const std::string settings = settings_of(info, scenario, rounds);
    for (const std::string& spec :
         lists.compressors.empty() || exact ? method.compressors : lists.compressors) {
      const std::string start =
          exact ? std::string(info.name) : fmt::format("{} {}", info.name, spec);
      for (const std::string& graph : chosen) {
        words.add(fmt::format("{}{}{}", start, info.graph == GraphNeed::any ? "" : " " + graph,
                              settings));
      }
    }
  }
  return std::move(words).all();
}

Candidate screen(const Scenario& scenario, const std::string& words, CodecMeter& codec) {
  const TrainPlan plan = make_train_plan(parse_run(words, scenario.task));
  const OptimizerOptions& options = plan.run.optimizer;
  const bool to_all = algorithm_info(options.algorithm).graph == GraphNeed::any;
  if (to_all && scenario.nodes > kMostToAll) {
    throw Error(
        fmt::format("{} nodes that all reach each other send too many messages to plan "
                    "with; {} may",
                    scenario.nodes, kMostToAll));
  }
  const PlannedJob job = planned_job(scenario, plan);
  Candidate candidate = {
      .words = words,
      .method = fmt::format("{} {}", options.algorithm, options.compressor),
      .compressed = options.compressor != "none",
      .codec = codec.speed_of(options.compressor, plan.tasks->make(0)->dimension())};
  Scenario paced = scenario;
  codec.apply(candidate.codec, paced);
  const Platform platform = scenario.platform(pairs_of(job));
  candidate.rounds =
      scenario.timing_only ? affordable_rounds(job, plan.run.rounds) : plan.run.rounds;
  candidate.seconds_per_round = seconds_per_round(
      job, platform, {.nodes = paced.paces, .overlap = options.overlap, .seed = options.seed},
      candidate.rounds);
  candidate.bytes_per_round = bytes_per_round(job, scenario.nodes, candidate.rounds);
  candidate.spectral_gap = to_all ? 1 : spectrum(*make_job_topology(options)).spectral_gap;
  return candidate;
}

std::vector<Candidate> in_order_of_promise(std::vector<Candidate> candidates) {
  const auto quicker = [](const Candidate& a, const Candidate& b) {
    return a.seconds_per_round < b.seconds_per_round;
  };
  std::map<std::string, std::vector<Candidate>> methods;
  for (Candidate& candidate : candidates) {
    methods[candidate.method].push_back(std::move(candidate));
  }
  std::vector<std::vector<Candidate>> tiers;  // by what graph of its method it has
  for (auto& [method, same] : methods) {
    std::stable_sort(same.begin(), same.end(), quicker);
    for (std::size_t tier = 0; !same.empty(); ++tier) {
      const double quick = kNearlyAsQuick * same.front().seconds_per_round;
      const auto end = std::find_if(same.begin(), same.end(), [&](const Candidate& candidate) {
        return candidate.seconds_per_round > quick;
      });
      const auto best = std::max_element(
          same.begin(), end,
          [](const Candidate& a, const Candidate& b) { return a.spectral_gap < b.spectral_gap; });
      tiers.resize(std::max(tiers.size(), tier + 1));
      tiers[tier].push_back(std::move(*best));
      same.erase(best);
    }
  }
  std::vector<Candidate> ordered;
  for (auto& tier : tiers) {
    std::stable_sort(tier.begin(), tier.end(), quicker);
    std::move(tier.begin(), tier.end(), std::back_inserter(ordered));
  }
  return ordered;
}

}  // namespace sotto::cli
