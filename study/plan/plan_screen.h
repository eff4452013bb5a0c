// What a search has to choose from: the runs that are proposed, and other ways to step beside them,
// screened by their algorithms' requirements and by the model of the network. One thread at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/comm/deadline.h>
#include <sotto/study/plan/plan_candidate.h>
#include <sotto/study/plan/plan_codec.h>
#include <sotto/study/plan/plan_graphs.h>
#include <sotto/study/plan/plan_proposals.h>
#include <sotto/study/plan/ranking.h>
#include <sotto/study/scenario/scenario.h>

namespace sotto::study {

/// What a search may try.
struct SearchSpace {
  CandidateLists lists = {};
  Goal goal = Goal::target;
  Round rounds = 0;                       ///< rounds of a run
  std::vector<PlannedGraph> graphs = {};  ///< graphs that are tried
  std::vector<std::string> groups = {};   ///< groups that are tried, as planned_groups gives them
  std::string tied = {};                  ///< a model with tied blocks to try; "": none
};

/// What is possible of it, and what is not.
struct Screened {
  std::vector<Candidate> candidates = {};
  std::vector<Refusal> refused = {};
  std::vector<Refusal> untried = {};  ///< algorithms that are not tried unasked
};

/// Screens the proposals and, beside those that vary, those intervals, fragments, delayed
/// gradients, groups and tied blocks that make a round shorter by a tenth, or may do so
/// (Candidate::may_be_shorter_than), the outer rule that the algorithm is tried with, and the step
/// rules. Fault::stopped where `stop` interrupts it. Throws
/// Error for a run of the scenario's own that cannot be, unless lists restrict the search, and
/// where nothing that was asked for is possible.
Result<Screened> screen_space(const SearchSpace& space, const Scenario& scenario, CodecMeter& codec,
                              const StopRequest& stop);

/// The order in which candidates are worth looking at where only their time a round counts, or what
/// a round costs: each method with its best graph by `figure`, the best method first; then with its
/// second graph, and so on. Of graphs within 5 % of the best the one that mixes best comes first.
std::vector<Candidate> in_order_of_promise(std::vector<Candidate> candidates,
                                           const std::function<double(const Candidate&)>& figure);

}  // namespace sotto::study
