// How many rounds a run needs to the target, guessed from those that were simulated: the logarithm
// is taken for a sum of what method, graph, step rules and interval each add (ridge regression by
// backfitting). What nothing is known of adds nothing, so that it is tried. One thread at a time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <sotto/study/plan/plan_candidate.h>

namespace sotto::study {

/// Guesses the rounds that a candidate needs from those that were simulated, or another figure of
/// which the same holds.
class RoundsGuess {
 public:
  /// Learns from a run that needed this many rounds.
  void learn(const Candidate& candidate, double rounds);
  /// The guess: rounds once something was learned, before that a figure that only compares
  /// candidates. Where nothing speaks for either, full precision, exchanges in every round and
  /// graphs that mix well are a little ahead.
  double of(const Candidate& candidate) const;

 private:
  struct Seen {
    std::vector<std::string> traits;
    double rest;  ///< log(rounds) minus what was assumed before any run
  };

  void fit();

  std::vector<Seen> seen_;
  double mean_ = 0;
  std::map<std::string, double> added_;  ///< addition to log(rounds), by trait
};

}  // namespace sotto::study
