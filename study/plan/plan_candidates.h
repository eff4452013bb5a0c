// The runs that the planner considers: algorithms × compressors × graphs, and of these local steps,
// delayed gradients and Adam. One thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/study/plan/plan_codec.h>
#include <sotto/study/plan/plan_graphs.h>
#include <sotto/study/plan/plan_model.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/train/run_spec.h>
#include <sotto/study/train/train_plan.h>

namespace sotto::study {

/// The user's restrictions of the search; empty: the planner's own choice.
struct CandidateLists {
  std::vector<std::string> algorithms;
  std::vector<std::string> compressors;
  std::vector<std::string> topologies;

  bool empty() const { return algorithms.empty() && compressors.empty() && topologies.empty(); }
};

/// The algorithm of full-precision all-reduce; its run without further settings is the baseline.
inline constexpr const char* kBaseline = "allreduce";

/// A run, and what the model says of it.
struct Candidate {
  RunSpec run;
  std::string algorithm;
  std::string compressor;  ///< the compressor's full specification
  std::string method;      ///< algorithm and compressor, without the graph
  std::string graph;       ///< the graph's specification; "" for algorithms that use none
  std::string step_rule;   ///< the run's settings that decide how nodes step; "" where it has none
  Round interval = 1;      ///< rounds from one exchange to the next
  bool compressed = false;
  bool own = false;  ///< the run is one of the scenario's own
  /// Rounds that the model predicts. Fewer than the run has in scenarios of timing only.
  Round rounds = 0;
  double predicted_seconds_per_round = 0;  ///< virtual seconds, predicted by plan_model.h
  double bytes_per_round = 0;              ///< bytes that a node sends a round
  /// Bytes that a node sends a round to members of its own group; none: nodes are in no groups.
  std::optional<double> bytes_per_round_within = {};
  double spectral_gap = 0;  ///< spectral gap of the graph; 1 for algorithms that use none
  CodecSpeed codec;

  bool baseline() const { return run.name == kBaseline; }
};

/// A run that was considered and cannot be.
struct Refusal {
  std::string run;  ///< the run's name
  std::string why;
};

/// A run that has not been checked against requirements and the model of the network yet.
struct Proposal {
  RunSpec run;
  bool own = false;
  bool varies = false;  ///< other ways to step may be tried with it
};

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

/// All proposals, full-precision all-reduce first (where nodes lie it is none: only robust runs
/// are), then the scenario's own runs (unless lists restrict the search), each once. Runs that
/// freeze a variance do so after 15 % of `rounds`. Throws Error for a name that is none, or a graph
/// that the nodes do not have.
std::vector<Proposal> proposals(const CandidateLists& lists, const Scenario& scenario,
                                const std::vector<PlannedGraph>& graphs, Round rounds);

/// Whether runs with Adam are to be tried beside those with the task's step rule: an algorithm that
/// is built on Adam has to be measured by Adam in full precision.
bool tries_adam(const CandidateLists& lists, const Scenario& scenario);

/// Whether runs with batches by speed are to be tried: some nodes are a tenth faster than others,
/// and the scenario says nothing of batches itself.
bool tries_batch_shares(const Scenario& scenario);

/// Whether runs with quasi-global momentum are to be tried beside those with the task's: nodes have
/// one, and data that differ.
bool tries_quasi_global(const Scenario& scenario);

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
