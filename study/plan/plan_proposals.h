// The runs that the planner proposes to itself: algorithms × compressors × graphs, and which ways
// to step are tried beside them. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/step_rule_info.h>
#include <sotto/study/plan/plan_graphs.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/train/run_spec.h>

namespace sotto::study {

/// The user's restrictions of the search; empty: the planner's own choice.
struct CandidateLists {
  std::vector<std::string> algorithms;
  std::vector<std::string> compressors;
  std::vector<std::string> topologies;

  bool empty() const { return algorithms.empty() && compressors.empty() && topologies.empty(); }
};

/// A run that has not been checked against requirements and the model of the network yet.
struct Proposal {
  RunSpec run;
  bool own = false;
  bool varies = false;  ///< other ways to step may be tried with it
};

/// Settings that a run has besides.
using MoreSettings = std::vector<RunSetting>;

/// The run with these settings more.
RunSpec with_settings(RunSpec run, const MoreSettings& settings);

/// The default rate of a step rule, where the task has one that was chosen for another rule.
MoreSettings rate_of(const StepRuleInfo& rule, const Scenario& scenario);

/// All proposals, full-precision all-reduce first (where nodes lie it is none: only robust runs
/// are), then the scenario's own runs (unless lists restrict the search), each once. Runs that
/// freeze a variance do so after 15 % of `rounds`. Throws Error for a name that is none, or a graph
/// that the nodes do not have.
std::vector<Proposal> proposals(const CandidateLists& lists, const Scenario& scenario,
                                const std::vector<PlannedGraph>& graphs, Round rounds);

/// Why plans of the scenario do not try an algorithm unasked, in words; empty where they do.
std::string why_not_tried(const AlgorithmInfo& info, const Scenario& scenario);

/// The step rules that are to be tried beside the task's sgd. Where algorithms are asked for these
/// are the ones that some of them are built on: they have to be measured by that rule in full
/// precision.
std::vector<const StepRuleInfo*> tried_rules(const CandidateLists& lists, const Scenario& scenario);

/// The outer rule that is tried with several rounds between exchanges: DiLoCo's where all nodes
/// reach each other, NoLoCo's where an algorithm takes its outer rule after a mixing that is exact.
/// None for others.
MoreSettings outer_rule(const AlgorithmInfo& info);

/// Whether some nodes compute a tenth faster than others.
bool uneven_nodes(const Scenario& scenario);

/// Whether runs with batches by speed are to be tried: some nodes are a tenth faster than others,
/// and the scenario says nothing of batches itself.
bool tries_batch_shares(const Scenario& scenario);

/// Whether runs with quasi-global momentum are to be tried beside those with the task's: nodes have
/// one, and data that differ.
bool tries_quasi_global(const Scenario& scenario);

}  // namespace sotto::study
