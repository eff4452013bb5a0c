// Screens the runs that are proposed by their algorithms' requirements and by the model of the
// network. One thread at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/step_rule_info.h>
#include <sotto/study/plan/plan_candidate.h>
#include <sotto/study/plan/plan_codec.h>
#include <sotto/study/plan/plan_proposals.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/train/run_spec.h>

namespace sotto::study {

/// Ways to step that are tried beside a proposal's own.
struct Variations {
  /// Rounds from one exchange to the next, each above 1, ascending.
  std::vector<Round> intervals{};
  bool delays = false;  ///< try gradients that do not wait for the exchange
  /// Step rules that are tried in place of the task's: Adam everywhere, and one that multiplies
  /// matrices where all nodes step as one.
  std::vector<const StepRuleInfo*> rules{};
  /// Try DiLoCo's and NoLoCo's outer rules with those intervals (outer_rule).
  bool outer_rules = false;
  std::vector<std::string> groups{};  ///< groups that are tried, as planned_groups gives them
  std::string tied{};                 ///< a model with tied blocks to try; "": none
  bool batch_shares = false;          ///< try batches by the nodes' speeds
  bool quasi_global = false;  ///< try quasi-global momentum in place of the task's, where nodes mix
};

/// Screens proposals by the algorithms' requirements and by the model of the network.
class Screen {
 public:
  /// Both must outlive this.
  Screen(const Scenario& scenario, CodecMeter& codec) : scenario_(scenario), codec_(codec) {}

  /// The run, and where it varies, with those intervals, with these in fragments, with delayed
  /// gradients, in groups and with tied blocks, that make a round shorter by a tenth; with the
  /// outer rule that its algorithm is tried with, and with the step rules. Throws Error for a run
  /// that its algorithm's requirements refuse.
  std::vector<Candidate> of(const Proposal& proposal, const Variations& variations);

  /// Ways to step that were refused since the last call, in words.
  std::vector<Refusal> take_refused() { return std::exchange(refused_, {}); }

 private:
  /// The run as it is and with the intervals, as Prediction::paces has them. Throws Error for a run
  /// that is refused.
  std::vector<Candidate> paces_of(const RunSpec& run, const std::vector<Round>& intervals);
  /// Gives the same, and none for a run that is refused, which is noted.
  std::vector<Candidate> paces_or_refusal(const RunSpec& run, const std::vector<Round>& intervals);
  /// Adds the paces of the run that make a round shorter by a tenth than the first that was found.
  void add_shorter(const RunSpec& run, const std::vector<Round>& intervals,
                   std::vector<Candidate>& found);
  /// Adds the run with delayed gradients, where that makes a round shorter by a tenth.
  void add_delayed(const RunSpec& run, std::vector<Candidate>& found);
  /// Adds candidates with intervals with the outer rule of the algorithm.
  void add_outer_rule(const RunSpec& run, const AlgorithmInfo& info,
                      const std::vector<Round>& intervals, std::vector<Candidate>& found);
  /// Adds the found candidates with the step rules to try, the first `count` of them.
  void add_rules(const RunSpec& run, const AlgorithmInfo& info, const Variations& variations,
                 std::size_t count, std::vector<Candidate>& found);
  /// Notes, once each, the wanted ways to step that do not go with the run, whose experts lie at
  /// nodes.
  void note_unfitting(const RunSpec& run, const AlgorithmInfo& info, const Variations& wanted);

  const Scenario& scenario_;
  CodecMeter& codec_;
  std::vector<Refusal> refused_;
  std::set<std::string> unfitting_;  ///< settings that note_unfitting has seen
};

/// The order in which candidates are worth looking at where only their time a round counts, or what
/// a round costs: each method with its best graph by `figure`, the best method first; then with its
/// second graph, and so on. Of graphs within 5 % of the best the one that mixes best comes first.
std::vector<Candidate> in_order_of_promise(std::vector<Candidate> candidates,
                                           const std::function<double(const Candidate&)>& figure);

}  // namespace sotto::study
