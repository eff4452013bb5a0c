// The history of a simulated run: evaluations of the nodes' models at the ends of rounds, to which
// nodes come at different times, with what was sent and paid until then.
//
// One thread at a time. Views the scenario and the plan, which must outlive it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include <sotto/sim/simulator.h>
#include <sotto/study/internal/times_there.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/simulation/model_judge.h>
#include <sotto/study/simulation/model_spread.h>
#include <sotto/study/simulation/simulation_result.h>
#include <sotto/study/train/train_plan.h>

namespace sotto::study {

class RunHistory {
 public:
  /// Finds the model that a node has at present. Not called where a scenario is of timing only.
  using ModelOf = std::function<std::span<const float>(std::size_t node)>;

  /// `by_worst`: points have the worst of the nodes' own models in place of the average.
  RunHistory(const Scenario& scenario, const TrainPlan& plan, bool by_worst, ModelOf model_of);

  /// Values of a model.
  std::size_t dimension() const { return judge_.dimension(); }

  /// Counts what nodes send, and when they end.
  void count(const TraceEntry& entry);
  /// A node has finished `done` rounds, and has the model that the end of the round is judged by,
  /// which is not kept but where nodes' own models are judged.
  void finished(Rank node, Round done);
  /// A node's model is about to change. Not to be called where a scenario is of timing only.
  void model_changes(Rank node);
  /// All nodes that are left have finished `done` rounds. Returns the new point of the history;
  /// null: none is due.
  const HistoryPoint* finished_by_all(Round done, SimTime time);

  /// Fills what a result has of the history, with its bills and what the target took. The run ended
  /// at `end`.
  void fill(SimulationResult& result, SimTime end) const;

 private:
  /// The models of one round, as the nodes come to its end at different times.
  struct Gathering {
    /// The models of all that came there and do not lie.
    ModelSpread spread;
    /// Where the nodes' own models are judged, too: copies of those that have changed since. One
    /// that is empty here is the node's own still.
    std::vector<std::vector<float>> models;
    /// What each node had sent by then; negative: it has not come there.
    std::vector<double> sent;
  };

  bool due(Round done) const;
  /// Evaluates the models of those nodes that came to the round's end.
  HistoryPoint inspect(const Gathering& gathering, Round done, SimTime time);
  /// What all nodes have cost by a time, at which each has sent so much.
  Bill bill_at(SimTime time, const std::vector<double>& sent) const;

  const Scenario& scenario_;
  const TrainPlan& plan_;
  ModelOf model_of_;
  ModelJudge judge_;
  TimesThere times_there_;
  std::vector<double> sent_;       ///< bytes by node, so far
  std::vector<SimTime> ended_at_;  ///< by node; kNever as long as it is there
  std::map<Round, Gathering> gatherings_;
  /// By node: the round of the gathering that looks at the node's own model and has no copy; 0:
  /// none does.
  std::vector<Round> gathered_as_is_;
  std::vector<HistoryPoint> points_;
  std::vector<Bill> bills_;  ///< of the points, where something has a cost
};

}  // namespace sotto::study
