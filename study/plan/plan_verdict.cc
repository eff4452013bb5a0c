#include <sotto/study/plan/plan_verdict.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <sotto/study/quality.h>
#include <sotto/study/scenario/costs.h>
#include <sotto/study/units.h>

namespace sotto::study {
namespace {

using Index = std::optional<std::size_t>;

constexpr double kUnreached = std::numeric_limits<double>::infinity();

/// A node's model that is so far behind the average has not come together with it.
constexpr double kApart = 0.1;
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

std::string factor_text(double factor) { return fmt::format("{:.3g} ×", factor); }

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

/// The sentences about one set of runs.
class Speaker {
 public:
  Speaker(const std::vector<PlannedRun>& runs, const Ranking& ranking)
      : runs_(runs), ranking_(ranking) {}

  double figure(std::size_t run) const { return *figure_of(runs_[run], ranking_); }
  const std::string& words(std::size_t run) const { return runs_[run].label; }
  bool is_allreduce(std::size_t run) const { return is_baseline(runs_[run].candidate); }

  /// "target in 12.3 s", "target for 0.42 EUR", "45 ms a round"
  std::string reaches(std::size_t run) const {
    return ranking_.goal == Goal::target
               ? fmt::format("target {} {}", ranking_.money ? "for" : "in", text(run))
               : text(run) + " a round";
  }
  /// "dpsgd ring, 12.3 s"
  std::string named(std::size_t run) const { return fmt::format("{}, {}", words(run), text(run)); }

  std::string compress(std::size_t winner, Index plain, Index allreduce) const {
    std::string line = fmt::format("{}: {}", words(winner), reaches(winner));
    if (allreduce) {
      line += fmt::format(", {} {} than full-precision all-reduce ({})",
                          factor_text(figure(*allreduce) / figure(winner)), ranking_.better(),
                          text(*allreduce));
    }
    if (plain && !is_allreduce(*plain)) {
      line += fmt::format(", {} {} than the best uncompressed run ({})",
                          factor_text(figure(*plain) / figure(winner)), ranking_.better(),
                          named(*plain));
    }
    return line + "." + missed(allreduce);
  }

  std::string plain(std::size_t winner, Index compressed, Index allreduce) const {
    std::string line = fmt::format("{}{}: {}", any_compressed() ? "Do not compress: " : "",
                                   words(winner), reaches(winner));
    if (!is_allreduce(winner) && allreduce) {
      line += fmt::format(", {} {} than full-precision all-reduce ({})",
                          factor_text(figure(*allreduce) / figure(winner)), ranking_.better(),
                          text(*allreduce));
    }
    if (compressed) {
      const double gain = figure(winner) / figure(*compressed);
      line += gain > 1 / kWorthwhile
                  ? fmt::format(
                        "; from the best compressed run ({}) it differs by no more than a "
                        "prediction is good for",
                        named(*compressed))
                  : fmt::format("; the best compressed run takes {} as long ({})",
                                factor_text(1 / gain), named(*compressed));
    } else {
      line += any_compressed() ? "; no compressed run gets there" : "; no compressed run was tried";
    }
    return line + "." + (compressed ? more_bytes(winner, *compressed) : "") + missed(allreduce);
  }

 private:
  /// Bytes that a node of a run sends until the target, or in a round.
  double bytes(std::size_t run) const {
    return ranking_.goal == Goal::target ? runs_[run].simulated.result.bytes_to_target.value_or(0)
                                         : runs_[run].candidate.bytes_per_round;
  }
  /// What it costs not to compress.
  std::string more_bytes(std::size_t winner, std::size_t compressed) const {
    return bytes(compressed) > 0 && bytes(winner) > bytes(compressed)
               ? fmt::format(" It sends {} a node{}, {} as much as the best compressed run ({}).",
                             amount(bytes(winner)),
                             ranking_.goal == Goal::target ? " until then" : " and round",
                             factor_text(bytes(winner) / bytes(compressed)),
                             amount(bytes(compressed)))
               : "";
  }
  std::string text(std::size_t run) const { return ranking_.text(figure(run)); }
  bool any_compressed() const {
    return std::any_of(runs_.begin(), runs_.end(),
                       [](const PlannedRun& run) { return run.candidate.compressed; });
  }
  std::string missed(Index allreduce) const {
    const bool tried = std::any_of(runs_.begin(), runs_.end(), [](const PlannedRun& run) {
      return is_baseline(run.candidate);
    });
    if (!tried || allreduce) {
      return "";
    }
    return ranking_.goal == Goal::target ? " Full-precision all-reduce does not reach the target."
                                         : " Full-precision all-reduce does not come to its end.";
  }

  const std::vector<PlannedRun>& runs_;
  const Ranking& ranking_;
};

/// How far the worst node's own model is behind the average in the end; none: it is not known.
std::optional<double> lag_of(const PlannedRun& run) {
  const auto& last = run.simulated.result.final;
  return last && last->own ? std::optional(quality_of(last->mean) - last->own->worst)
                           : std::nullopt;
}

/// A target is the averaged model's; what is to be known where the nodes' own are far from it.
std::string apart(const std::vector<PlannedRun>& runs, std::size_t winner, const Ranking& ranking) {
  const auto lag = lag_of(runs[winner]);
  if (!lag || *lag < kApart) {
    return "";
  }
  const bool shares = quality_at(runs[winner].simulated.result.final->mean).share;
  const auto distance = [shares](double far) {
    return shares ? fmt::format("{:.0f} points", 100 * far) : fmt::format("{:.2f} of R²", far);
  };
  std::string line = fmt::format(
      "The target is the averaged model's; the worst node's own is {} behind it in the end.",
      distance(*lag));
  Index together;
  for (std::size_t k = 0; k < runs.size(); ++k) {
    const auto figure = figure_of(runs[k], ranking);
    if (figure && lag_of(runs[k]).value_or(kApart) < kApart &&
        (!together || *figure < *figure_of(runs[*together], ranking))) {
      together = k;
    }
  }
  return together ? fmt::format("{} Less than {}: {}, {}.", line, distance(kApart),
                                runs[*together].label,
                                ranking.text(*figure_of(runs[*together], ranking)))
                  : line;
}

/// Adds a line for each run of which nodes ended early: which ones, and why.
void tell_of_early_ends(const std::vector<PlannedRun>& runs, std::vector<std::string>& lines) {
  const auto early = [](const PlannedRun& run) {
    return !run.simulated.result.early_end().empty();
  };
  const auto first = std::find_if(runs.begin(), runs.end(), early);
  if (first != runs.end()) {
    const auto more = std::count_if(first + 1, runs.end(), early);
    lines.push_back(fmt::format("{} ended early: {}{}.", first->label,
                                first->simulated.result.early_end(),
                                more > 0 ? fmt::format("; and so did {} more", more) : ""));
  }
}

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

std::string Ranking::text(double figure) const {
  return money ? money_text(currency, figure) : duration_text(figure);
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
    figures.push_back(figure.value_or(kUnreached));
  }
  if (figures.empty()) {
    return std::nullopt;
  }
  const auto middle = figures.begin() + static_cast<std::ptrdiff_t>((figures.size() - 1) / 2);
  std::nth_element(figures.begin(), middle, figures.end());
  return *middle < kUnreached ? std::optional(*middle) : std::nullopt;
}

Verdict judge(const std::vector<PlannedRun>& runs, const Ranking& ranking, bool by_worst) {
  const Speaker say(runs, ranking);
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
    tell_of_early_ends(runs, verdict.lines);
    return verdict;
  }
  verdict.compress =
      compressed && (!plain || clearly_better(runs[*compressed], runs[*plain], ranking));
  verdict.winner = verdict.compress ? compressed : plain;
  const double best = say.figure(*verdict.winner);
  if (allreduce) {
    verdict.over_allreduce = say.figure(*allreduce) / best;
  }
  if (plain) {
    verdict.over_best_uncompressed = say.figure(*plain) / best;
  }
  verdict.lines = {verdict.compress ? say.compress(*compressed, plain, allreduce)
                                    : say.plain(*plain, compressed, allreduce)};
  // Where the worst node is to reach the target, nothing else is to be known of it.
  const std::string line = by_worst ? "" : apart(runs, *verdict.winner, ranking);
  if (!line.empty()) {
    verdict.lines.push_back(line);
  }
  tell_of_early_ends(runs, verdict.lines);
  return verdict;
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
