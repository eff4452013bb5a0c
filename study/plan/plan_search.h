// Which candidates are simulated, and in what order. All are screened first (plan_screen.h).
// The next one is that of which seconds a round (the model's) and guessed rounds (plan_guess.h)
// promise most, until no other promises to come near the best or the budget is spent; so too among
// the uncompressed runs, and among the compressed ones, as the verdict is between these. The best
// of both are simulated again with other seeds. What the model says is a lower bound where queues
// can overflow: no way to step is left out for it there. One thread at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <sotto/base/setting_text.h>
#include <sotto/study/plan/plan_guess.h>
#include <sotto/study/plan/plan_screen.h>
#include <sotto/study/plan/planned_run.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/simulation/simulated_run.h>
#include <sotto/study/strategies/score.h>

namespace sotto::study {

/// Options of a search: its candidates, its budget and its progress reports.
struct SearchOptions {
  CandidateLists lists = {};
  std::string codec = {};     ///< the codecs' speed as CodecMeter takes it
  std::uint64_t budget = 24;  ///< candidates to simulate besides the scenario's own runs
  std::uint64_t seeds = 3;    ///< seeds with which the best candidates are simulated
  bool by_worst = false;      ///< the target is for the worst node's model, not the averaged one
  bool by_money = false;      ///< look for the cheapest run, not the quickest; needs costs
  int threads = 1;            ///< threads that take gradients; results do not depend on it
  bool timelines = false;     ///< keep the nodes' timelines
  /// Receives progress as lines for people; by default none.
  std::function<void(const SettingText& line)> tell = {};
  MakeObserver observer = {};  ///< makes the observers, as in SimulationRequest
  StopRequest stop = {};       ///< true interrupts the search
};

class PlanSearch {
 public:
  /// A search of `scenario`. Throws Error for invalid options.
  PlanSearch(SearchOptions options, Scenario scenario);

  /// The runs that a user should see: all-reduce first, the scenario's own, and the best. Where the
  /// search was interrupted, those of the runs that had ended, and Fault::stopped where none had.
  /// Throws Error where nothing that was asked for is possible.
  Result<std::vector<PlannedRun>> find();
  /// Whether `stop` ended the search before it had seen all that it wanted to see.
  bool interrupted() const { return interrupted_; }

  const Scenario& scenario() const { return scenario_; }
  const Ranking& ranking() const { return ranking_; }
  bool by_worst() const { return options_.by_worst; }
  Round rounds() const { return space_.rounds; }
  /// What the score of a run with the scenario's model and batch is made of.
  const ScoreTerms& score_terms() const { return score_terms_; }
  bool codec_measured() const { return codec_.measures(); }
  /// All that were screened, the most promising first.
  const std::vector<Candidate>& candidates() const { return candidates_; }
  /// Whether this run was simulated.
  bool simulated(const RunSpec& run) const;
  const std::vector<Refusal>& refused() const { return refused_; }
  const std::vector<PlannedGraph>& graphs() const { return space_.graphs; }
  /// The run's name, with graphs' short names.
  std::string label_of(const RunSpec& run) const;

 private:
  using Admitted = std::function<bool(const Candidate&)>;

  // The parts of the search end with Fault::stopped once `stop` interrupts it.
  Status search();
  /// Speaks only when nothing can be refused any more.
  Status screen();
  /// Simulates candidates that `admitted` lets through, as long as one is promising.
  Status explore(std::uint64_t budget, const Admitted& admitted);
  /// Simulates the candidates whose rounds promise most, and the first without compression.
  Status explore_by_pace();
  /// Simulates the first `count` candidates that `admitted` lets through, besides the baseline;
  /// those that have been simulated count.
  Status add_first(std::uint64_t count, const Admitted& admitted);
  /// Simulates a candidate with the scenario's seed, and learns from it.
  Status add_run(const Candidate& candidate, double hopeless);
  /// The best of both kinds with the other seeds, up to the target.
  Status add_seeds();
  Status add_seeds_of(PlannedRun& run);
  Result<SimulatedRun> simulate(const Candidate& candidate, std::uint64_t seed,
                                const std::function<bool(const HistoryPoint&)>& enough);

  void tell(const SettingText& line) const;
  void say_codec() const;
  /// Says for how many candidates the model has a lower bound alone.
  void say_bounds() const;
  /// The untried candidate that is expected to be best of those whose promise comes near the best
  /// run's; none: none does.
  const Candidate* next(const Admitted& admitted) const;
  /// Virtual seconds or, where these are ranked by money, what all nodes cost in that time.
  double spent(double seconds, double bytes_per_node) const;
  double spent_in_round(const Candidate& candidate) const;
  double promise(const Candidate& candidate) const;
  /// The promise × how many times as long as the model says rounds of runs like it took, where they
  /// may take longer.
  double expectation(const Candidate& candidate) const;
  /// The figure of the best run so far that `admitted` lets through; infinite: none.
  double best(const Admitted& admitted) const;
  std::vector<PlannedRun> shown();

  SearchOptions options_;
  Scenario scenario_;
  CodecMeter codec_;
  Ranking ranking_;
  SearchSpace space_;
  ScoreTerms score_terms_;
  std::vector<Candidate> candidates_;
  std::vector<Refusal> refused_;
  RoundsGuess guess_;
  /// How many times as long as the model says rounds take that may take longer.
  RoundsGuess longer_;
  std::vector<PlannedRun> runs_;
  bool interrupted_ = false;
};

}  // namespace sotto::study
