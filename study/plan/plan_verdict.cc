#include <sotto/study/plan/plan_verdict.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <sotto/comm/transport.h>
#include <sotto/study/quality.h>
#include <sotto/study/units.h>

namespace sotto::study {
namespace {

using Index = std::optional<std::size_t>;

constexpr double kUnreached = std::numeric_limits<double>::infinity();

/// A node's model that is so far behind the average has not come together with it.
constexpr double kApart = 0.1;
/// Runs that differ by no more are equally quick.
constexpr double kAlike = 1.02;

bool is_baseline(const Candidate& candidate) { return candidate.baseline(); }

/// The run that arrives first of those that `admitted` lets through; among those that differ
/// from it by no more than kAlike, the one that sends least.
template <typename Admitted>
Index first_of(const std::vector<PlannedRun>& runs, Goal goal, const Admitted& admitted) {
  std::size_t seeds = 0;
  for (const PlannedRun& run : runs) {
    seeds = std::max(seeds, run.times.size());
  }
  double least = kUnreached;
  std::vector<std::pair<std::size_t, double>> ranked;
  for (std::size_t k = 0; k < runs.size(); ++k) {
    const auto time = time_of(runs[k], goal);
    const bool repeated = runs[k].times.size() == seeds || is_baseline(runs[k].candidate);
    if (time && repeated && admitted(runs[k].candidate)) {
      ranked.emplace_back(k, *time);
      least = std::min(least, *time);
    }
  }
  Index best;
  std::pair<double, double> fewest{kUnreached, kUnreached};  // bytes, then seconds
  for (const auto& [k, time] : ranked) {
    const std::pair cost(runs[k].candidate.bytes_per_round, time);
    if (time <= kAlike * least && cost < fewest) {
      fewest = cost;
      best = k;
    }
  }
  return best;
}

std::string times(double factor) { return fmt::format("{:.3g} ×", factor); }

/// Sooner by what is worth it, and with every seed that both were simulated with.
bool clearly_sooner(const PlannedRun& a, const PlannedRun& b, Goal goal) {
  if (*time_of(b, goal) <= kWorthwhile * *time_of(a, goal)) {
    return false;
  }
  for (std::size_t k = 0; k < std::min(a.times.size(), b.times.size()); ++k) {
    if (!(a.times[k].value_or(kUnreached) < b.times[k].value_or(kUnreached))) {
      return false;
    }
  }
  return true;
}

/// The sentences about one set of runs.
class Speaker {
 public:
  Speaker(const std::vector<PlannedRun>& runs, Goal goal) : runs_(runs), goal_(goal) {}

  double time(std::size_t run) const { return *time_of(runs_[run], goal_); }
  const std::string& words(std::size_t run) const { return runs_[run].label; }
  bool is_allreduce(std::size_t run) const { return is_baseline(runs_[run].candidate); }

  /// "target in 12.3 s", "45 ms a round"
  std::string reaches(std::size_t run) const {
    return goal_ == Goal::target ? "target in " + duration_text(time(run))
                                 : duration_text(time(run)) + " a round";
  }
  /// "dpsgd ring, 12.3 s"
  std::string named(std::size_t run) const {
    return fmt::format("{}, {}", words(run), duration_text(time(run)));
  }

  std::string compress(std::size_t winner, Index plain, Index allreduce) const {
    std::string line = fmt::format("{}: {}", words(winner), reaches(winner));
    if (allreduce) {
      line += fmt::format(", {} sooner than full-precision all-reduce ({})",
                          times(time(*allreduce) / time(winner)), duration_text(time(*allreduce)));
    }
    if (plain && !is_allreduce(*plain)) {
      line += fmt::format(", {} sooner than the best uncompressed run ({})",
                          times(time(*plain) / time(winner)), named(*plain));
    }
    return line + "." + missed(allreduce);
  }

  std::string plain(std::size_t winner, Index compressed, Index allreduce) const {
    std::string line = fmt::format("{}{}: {}", any_compressed() ? "Do not compress: " : "",
                                   words(winner), reaches(winner));
    if (!is_allreduce(winner) && allreduce) {
      line += fmt::format(", {} sooner than full-precision all-reduce ({})",
                          times(time(*allreduce) / time(winner)), duration_text(time(*allreduce)));
    }
    if (compressed) {
      const double gain = time(winner) / time(*compressed);
      line += gain > 1 / kWorthwhile
                  ? fmt::format(
                        "; from the best compressed run ({}) it differs by no more than a "
                        "prediction is good for",
                        named(*compressed))
                  : fmt::format("; the best compressed run takes {} as long ({})", times(1 / gain),
                                named(*compressed));
    } else {
      line += any_compressed() ? "; no compressed run gets there" : "; no compressed run was tried";
    }
    return line + "." + missed(allreduce);
  }

 private:
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
    return goal_ == Goal::target ? " Full-precision all-reduce does not reach the target."
                                 : " Full-precision all-reduce does not come to its end.";
  }

  const std::vector<PlannedRun>& runs_;
  Goal goal_;
};

std::string as_word(const std::string& text) {
  return text.find_first_of(" ;*?'\"$") == std::string::npos ? text : "'" + text + "'";
}

/// The transport that the scenario is about, else one for several hosts; empty: this build has
/// none.
std::string transport_of(const Scenario& scenario) {
  const TransportModel zmq = TransportModel::zmq();
  for (const TransportInfo& info : transports()) {
    const bool other =
        scenario.transport.on_demand
            ? info.name != "gloo"
            : scenario.transport.send_buffer_bytes == zmq.send_buffer_bytes && info.name != "zmq";
    if (info.available && info.processes && !other) {
      return std::string(info.name);
    }
  }
  return "";
}

/// How far the worst node's own model is behind the average in the end; none: it is not known.
std::optional<double> lag_of(const PlannedRun& run) {
  const auto& last = run.simulated.result.final;
  return last && last->own ? std::optional(quality_of(last->mean) - last->own->worst)
                           : std::nullopt;
}

/// A target is the averaged model's; what is to be known where the nodes' own are far from it.
std::string apart(const std::vector<PlannedRun>& runs, std::size_t winner, Goal goal) {
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
    const auto time = time_of(runs[k], goal);
    if (time && lag_of(runs[k]).value_or(kApart) < kApart &&
        (!together || *time < *time_of(runs[*together], goal))) {
      together = k;
    }
  }
  return together
             ? fmt::format("{} Less than {}: {}, {}.", line, distance(kApart),
                           runs[*together].label, duration_text(*time_of(runs[*together], goal)))
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

std::optional<double> time_to(const Scenario& scenario, const std::vector<HistoryPoint>& history) {
  // How far an evaluation is off, at most: positive where it is not there.
  const auto lacking = [&](const HistoryPoint& entry) {
    const double quality = quality_of(entry);
    double most = -kUnreached;
    if (const auto target = scenario.target_quality()) {
      most = std::isfinite(quality) ? *target - quality : kUnreached;
    }
    if (scenario.target_loss) {
      most =
          std::max(most, std::isnan(entry.loss) ? kUnreached : entry.loss - *scenario.target_loss);
    }
    return most;
  };
  double before = kUnreached;
  double time_before = 0;
  for (const HistoryPoint& entry : history) {
    const double now = lacking(entry);
    const double time = entry.time_s;
    if (now <= 0) {
      const double share = before < kUnreached ? before / (before - now) : 1;
      return time_before + share * (time - time_before);
    }
    before = now;
    time_before = time;
  }
  return std::nullopt;
}

std::optional<double> time_of(const PlannedRun& run, Goal goal) {
  if (goal == Goal::epoch) {
    return run.simulated_seconds_per_round();
  }
  std::vector<double> times;
  times.reserve(run.times.size());
  for (const auto& time : run.times) {
    times.push_back(time.value_or(kUnreached));
  }
  if (times.empty()) {
    return std::nullopt;
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle < kUnreached ? std::optional(*middle) : std::nullopt;
}

Verdict judge(const std::vector<PlannedRun>& runs, Goal goal, bool by_worst) {
  const Speaker say(runs, goal);
  const Index compressed =
      first_of(runs, goal, [](const Candidate& one) { return one.compressed; });
  const Index plain = first_of(runs, goal, [](const Candidate& one) { return !one.compressed; });
  const Index allreduce = first_of(runs, goal, is_baseline);
  Verdict verdict;
  if (!compressed && !plain) {
    verdict.lines = {goal == Goal::target
                         ? "No run reaches the target in its rounds: give [task] more rounds, "
                           "another lr, or an easier [target]."
                         : "No run comes to its end."};
    tell_of_early_ends(runs, verdict.lines);
    return verdict;
  }
  verdict.compress =
      compressed && (!plain || clearly_sooner(runs[*compressed], runs[*plain], goal));
  verdict.winner = verdict.compress ? compressed : plain;
  const double best = say.time(*verdict.winner);
  if (allreduce) {
    verdict.over_allreduce = say.time(*allreduce) / best;
  }
  if (plain) {
    verdict.over_best_uncompressed = say.time(*plain) / best;
  }
  verdict.lines = {verdict.compress ? say.compress(*compressed, plain, allreduce)
                                    : say.plain(*plain, compressed, allreduce)};
  // Where the worst node is to reach the target, nothing else is to be known of it.
  if (const std::string line = by_worst ? "" : apart(runs, *verdict.winner, goal); !line.empty()) {
    verdict.lines.push_back(line);
  }
  tell_of_early_ends(runs, verdict.lines);
  return verdict;
}

std::string time_text(const PlannedRun& run, Goal goal) {
  const auto time = time_of(run, goal);
  if (goal == Goal::epoch || run.times.size() < 2) {
    return time ? duration_text(*time) : "–";
  }
  const auto reached = std::count_if(run.times.begin(), run.times.end(),
                                     [](const auto& one) { return one.has_value(); });
  if (static_cast<std::size_t>(reached) < run.times.size()) {
    return fmt::format("{} ({} of {} seeds)", time ? duration_text(*time) : "–", reached,
                       run.times.size());
  }
  const auto [low, high] = std::minmax_element(run.times.begin(), run.times.end());
  return fmt::format("{} ({} – {})", duration_text(*time), duration_text(**low),
                     duration_text(**high));
}

std::string train_command(const RunSpec& run, const Scenario& scenario, Round rounds) {
  std::string command = fmt::format("sotto train --nodes={}", scenario.nodes);
  bool length = false;
  for (const std::string& word : train_words(run, scenario.task_words)) {
    length = length || word.starts_with("--rounds=") || word.starts_with("--epochs=");
    command += fmt::format(" {}", as_word(word));
  }
  if (!length) {
    command += fmt::format(" --rounds={}", rounds);
  }
  if (const std::uint64_t seed = scenario.task.seed; seed != 0) {
    command += fmt::format(" --seed={}", seed);
  }
  const std::string transport = transport_of(scenario);
  return transport.empty() ? command : fmt::format("{} --transport={}", command, transport);
}

}  // namespace sotto::study
