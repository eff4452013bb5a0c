#include <sotto/study/plan/plan_guess.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace sotto::study {
namespace {

/// Weight of the assumption that a trait adds nothing, as a number of observations.
constexpr double kRidge = 0.3;
constexpr int kSweeps = 100;

std::vector<std::string> traits_of(const Candidate& candidate) {
  return {"method " + candidate.method, "graph " + candidate.graph, "step " + candidate.step_rule,
          "outer " + candidate.outer_rule, fmt::format("interval {}", candidate.interval)};
}

/// Small, as it is to decide only between equals.
double assumed(const Candidate& candidate) {
  return 0.01 * (candidate.compressed ? 1 : 0) + 0.02 * (1 - candidate.spectral_gap) +
         0.01 * std::log2(static_cast<double>(candidate.interval));
}

}  // namespace

void RoundsGuess::learn(const Candidate& candidate, double rounds) {
  seen_.push_back({traits_of(candidate), std::log(rounds) - assumed(candidate)});
  fit();
}

double RoundsGuess::of(const Candidate& candidate) const {
  double sum = mean_ + assumed(candidate);
  for (const std::string& trait : traits_of(candidate)) {
    const auto found = added_.find(trait);
    sum += found == added_.end() ? 0 : found->second;
  }
  return std::exp(sum);
}

void RoundsGuess::fit() {
  added_.clear();
  mean_ = seen_.front().rest;
  const auto rest_of = [&](const Seen& seen) {
    double rest = seen.rest - mean_;
    for (const std::string& trait : seen.traits) {
      rest -= added_[trait];
    }
    return rest;
  };
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double sum = 0;
    for (const Seen& seen : seen_) {
      sum += rest_of(seen);
    }
    mean_ += sum / static_cast<double>(seen_.size());
    for (auto& [trait, value] : added_) {
      double left = 0;
      double count = kRidge;
      for (const Seen& seen : seen_) {
        if (std::find(seen.traits.begin(), seen.traits.end(), trait) != seen.traits.end()) {
          left += rest_of(seen) + value;
          count += 1;
        }
      }
      value = left / count;
    }
  }
}

}  // namespace sotto::study
