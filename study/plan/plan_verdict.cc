#include <sotto/study/plan/plan_verdict.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <sotto/study/plan/internal/verdict_words.h>

namespace sotto::study {
namespace {

using Index = std::optional<std::size_t>;

constexpr double kUnreached = std::numeric_limits<double>::infinity();

/// Runs that differ by no more are equally good.
constexpr double kAlike = 1.02;

bool is_baseline(const Candidate& candidate) { return candidate.baseline(); }

/// The run that is best of those that `admitted` lets through; among those that differ
/// from it by no more than kAlike, the one that sends least.
template <typename Admitted>
Index first_of(const std::vector<PlannedRun>& runs, const Ranking& ranking,
               const Admitted& admitted) {
  std::size_t seeds = 0;
  for (const PlannedRun& run : runs) {
    seeds = std::max(seeds, run.times.size());
  }
  double least = kUnreached;
  std::vector<std::pair<std::size_t, double>> ranked;
  for (std::size_t k = 0; k < runs.size(); ++k) {
    const auto figure = figure_of(runs[k], ranking);
    const bool repeated = runs[k].times.size() == seeds || is_baseline(runs[k].candidate);
    if (figure && repeated && admitted(runs[k].candidate)) {
      ranked.emplace_back(k, *figure);
      least = std::min(least, *figure);
    }
  }
  Index best;
  std::pair<double, double> fewest{kUnreached, kUnreached};  // bytes, then the figure
  for (const auto& [k, figure] : ranked) {
    const std::pair cost(runs[k].candidate.bytes_per_round, figure);
    if (figure <= kAlike * least && cost < fewest) {
      fewest = cost;
      best = k;
    }
  }
  return best;
}

/// Better by what is worth it, and with every seed that both were simulated with.
bool clearly_better(const PlannedRun& a, const PlannedRun& b, const Ranking& ranking) {
  if (*figure_of(b, ranking) <= kWorthwhile * *figure_of(a, ranking)) {
    return false;
  }
  const auto& of_a = a.figures(ranking);
  const auto& of_b = b.figures(ranking);
  for (std::size_t k = 0; k < std::min(of_a.size(), of_b.size()); ++k) {
    if (!(of_a[k].value_or(kUnreached) < of_b[k].value_or(kUnreached))) {
      return false;
    }
  }
  return true;
}

/// Adds the sentence, if there is one.
void add_line(std::vector<std::string>& lines, std::string line) {
  if (!line.empty()) {
    lines.push_back(std::move(line));
  }
}

}  // namespace

Verdict judge(const std::vector<PlannedRun>& runs, const Ranking& ranking, bool by_worst) {
  const VerdictWords say(runs, ranking);
  const Index compressed =
      first_of(runs, ranking, [](const Candidate& one) { return one.compressed; });
  const Index plain = first_of(runs, ranking, [](const Candidate& one) { return !one.compressed; });
  const Index allreduce = first_of(runs, ranking, is_baseline);
  Verdict verdict;
  if (!compressed && !plain) {
    verdict.lines = {ranking.goal == Goal::target
                         ? "No run reaches the target in its rounds: give [task] more rounds, "
                           "another lr, or an easier [target]."
                         : "No run comes to its end."};
    add_line(verdict.lines, say.early_ends());
    return verdict;
  }
  verdict.compress =
      compressed && (!plain || clearly_better(runs[*compressed], runs[*plain], ranking));
  verdict.winner = verdict.compress ? compressed : plain;
  const auto over = [&](std::size_t run) {
    return *figure_of(runs[run], ranking) / *figure_of(runs[*verdict.winner], ranking);
  };
  if (allreduce) {
    verdict.over_allreduce = over(*allreduce);
  }
  if (plain) {
    verdict.over_best_uncompressed = over(*plain);
  }
  verdict.lines = {verdict.compress ? say.compress(*compressed, plain, allreduce)
                                    : say.plain(*plain, compressed, allreduce)};
  // Where the worst node is to reach the target, nothing else is to be known of it.
  add_line(verdict.lines, by_worst ? "" : say.apart(*verdict.winner));
  add_line(verdict.lines, say.early_ends());
  return verdict;
}

}  // namespace sotto::study
