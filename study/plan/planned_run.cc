#include <sotto/study/plan/planned_run.h>

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace sotto::study {
namespace {

constexpr double kNotReached = std::numeric_limits<double>::infinity();

}  // namespace

const std::vector<std::optional<double>>& PlannedRun::figures(const Ranking& ranking) const {
  return ranking.money ? money : times;
}

void PlannedRun::add_seed(const Target& target, const SimulationResult& result) {
  times.push_back(time_to_target(target, result.history));
  const auto there = crossing(target, result.history);
  money.push_back(
      there && !result.bills.empty()
          ? std::optional(there->of(result.bills, [](const Bill& bill) { return bill.money; }))
          : std::nullopt);
}

std::optional<double> PlannedRun::simulated_seconds_per_round() const {
  const SimulationResult& result = simulated.result;
  return result.early_end().empty() && result.rounds > 0
             ? std::optional(result.virtual_s / static_cast<double>(result.rounds))
             : std::nullopt;
}

std::optional<double> PlannedRun::error() const {
  const auto found = simulated_seconds_per_round();
  return found ? std::optional(candidate.predicted_seconds_per_round / *found - 1) : std::nullopt;
}

std::optional<double> figure_of(const PlannedRun& run, const Ranking& ranking) {
  if (ranking.goal == Goal::epoch) {
    const auto seconds = run.simulated_seconds_per_round();
    const SimulationResult& result = run.simulated.result;
    return seconds && ranking.money
               ? std::optional(result.bill->money / static_cast<double>(result.rounds))
               : seconds;
  }
  std::vector<double> figures;
  for (const auto& figure : run.figures(ranking)) {
    figures.push_back(figure.value_or(kNotReached));
  }
  if (figures.empty()) {
    return std::nullopt;
  }
  const auto middle = figures.begin() + static_cast<std::ptrdiff_t>((figures.size() - 1) / 2);
  std::nth_element(figures.begin(), middle, figures.end());
  return *middle < kNotReached ? std::optional(*middle) : std::nullopt;
}

std::string figure_text(const PlannedRun& run, const Ranking& ranking) {
  const auto figure = figure_of(run, ranking);
  const auto& figures = run.figures(ranking);
  if (ranking.goal == Goal::epoch || figures.size() < 2) {
    return figure ? ranking.text(*figure) : "–";
  }
  const auto reached = std::count_if(figures.begin(), figures.end(),
                                     [](const auto& one) { return one.has_value(); });
  if (static_cast<std::size_t>(reached) < figures.size()) {
    return fmt::format("{} ({} of {} seeds)", figure ? ranking.text(*figure) : "–", reached,
                       figures.size());
  }
  const auto [low, high] = std::minmax_element(figures.begin(), figures.end());
  return fmt::format("{} ({} – {})", ranking.text(*figure), ranking.text(**low),
                     ranking.text(**high));
}

}  // namespace sotto::study
