// The regret of several learners on the same streams, over all rates and seeds.
//
// Regret: the mean over nodes and rounds of the loss that each node suffered, less that of the best
// fixed model in hindsight (Stream::best_fixed_loss): He et al. 2019 (arXiv:1910.04956), equation
// (2), divided by n T. It is negative where nodes do better by fitting their own data than any one
// model does on everyone's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "contest.h"
#include "stream.h"

namespace sotto::bench {

struct StudyOptions {
  StreamOptions stream;  ///< the seed is overridden
  std::vector<double> rates = {0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10};
  std::uint64_t seeds = 5;  ///< 1 … seeds
  unsigned threads = 1;     ///< results do not depend on it
};

/// One learner's regrets.
struct Standing {
  std::string name;
  std::vector<std::vector<double>> regret;  ///< the regret by rate, then seed; ∞ where it diverged
  double bytes = 0;                         ///< mean of Play::bytes at the first rate
  double mass = 1;                          ///< least Play::mass at the first rate

  double mean(std::size_t rate) const;
  /// The rate with the least mean; what a learner is judged by, each at its own.
  std::size_t best_rate() const;
  std::span<const double> best() const { return regret[best_rate()]; }
};

struct Case {
  std::string data;
  StreamOptions stream;
  Round rounds = 0;
  std::vector<double> hindsight;  ///< the loss of the best fixed model, by seed
  std::vector<Standing> standings;
};

/// Isolated, returned trust only, push-sum, central: what the paper's claim is about, from the
/// largest regret to the least; then compressed push-sum, push-sum that tells half of those whom
/// it trusts in each round, and push-sum on the graph `evened`. `file` is a specification `file:…`
/// without cut and mutual.
std::vector<Learner> learners(const std::string& file, int nodes);
inline constexpr std::size_t kClaimed = 4;

Case run_case(const std::shared_ptr<const Dataset>& pool, std::span<const Learner> learners,
              const StudyOptions& options);

/// In how many seeds learner `above` has more regret than `below`, each at its best rate.
std::size_t seeds_in_order(const Case& result, std::size_t above, std::size_t below);

}  // namespace sotto::bench
