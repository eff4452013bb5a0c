// Screens the runs that are proposed by their algorithms' requirements and by the model of the
// network. One thread at a time.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/study/plan/plan_candidate.h>
#include <sotto/study/plan/plan_codec.h>
#include <sotto/study/plan/plan_model.h>
#include <sotto/study/plan/plan_proposals.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/train/train_plan.h>

namespace sotto::study {

/// Ways to step that are tried beside a proposal's own.
struct Variations {
  /// Rounds from one exchange to the next, each above 1, ascending.
  std::vector<Round> intervals{};
  bool delays = false;                ///< try gradients that do not wait for the exchange
  bool adam = false;                  ///< try Adam in place of the task's step rule
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
  /// gradients, in groups and with tied blocks, that make a round shorter by a tenth; each of these
  /// with Adam as well. Throws Error for a run that its algorithm's requirements refuse.
  std::vector<Candidate> of(const Proposal& proposal, const Variations& variations);

 private:
  /// What the proposal says of itself, without a prediction.
  Candidate candidate_of(const Proposal& proposal, const TrainPlan& plan,
                         const ParameterLayout& layout);
  /// Adds the proposal with one setting more, where that makes a round shorter by a tenth.
  void add_with(std::string_view setting, const std::string& value, const Proposal& proposal,
                const Variations& variations, std::vector<Candidate>& found);
  void predict(Candidate& candidate, const PlannedJob& job, const Platform& platform,
               const JobTiming& timing, Round rounds) const;

  const Scenario& scenario_;
  CodecMeter& codec_;
};

/// The order in which candidates are worth looking at where only their time a round counts, or what
/// a round costs: each method with its best graph by `figure`, the best method first; then with its
/// second graph, and so on. Of graphs within 5 % of the best the one that mixes best comes first.
std::vector<Candidate> in_order_of_promise(std::vector<Candidate> candidates,
                                           const std::function<double(const Candidate&)>& figure);

}  // namespace sotto::study
