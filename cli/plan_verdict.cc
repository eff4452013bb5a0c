#include "plan_verdict.h"

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/ids.h>

#include "run_words.h"
#include "simulated_result.h"
#include "units.h"

namespace sotto::cli {
namespace {

using Index = std::optional<std::size_t>;

/// Of the runs that `admitted` lets through, the one that is there first.
template <typename Admitted>
Index first_of(const std::vector<PlannedRun>& runs, Goal goal, const Admitted& admitted) {
  Index best;
  for (std::size_t k = 0; k < runs.size(); ++k) {
    const auto time = time_of(runs[k], goal);
    if (time && admitted(runs[k].candidate) && (!best || *time < *time_of(runs[*best], goal))) {
      best = k;
    }
  }
  return best;
}

std::string times(double factor) { return fmt::format("{:.3g} ×", factor); }

/// The sentences about one set of runs.
class Speaker {
 public:
  Speaker(const std::vector<PlannedRun>& runs, Goal goal) : runs_(runs), goal_(goal) {}

  double time(std::size_t run) const { return *time_of(runs_[run], goal_); }
  const std::string& words(std::size_t run) const { return runs_[run].candidate.words; }
  bool is_allreduce(std::size_t run) const { return words(run) == "allreduce"; }

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
    std::string line = fmt::format("Do not compress: {}: {}", words(winner), reaches(winner));
    if (!is_allreduce(winner) && allreduce) {
      line += fmt::format(", {} sooner than full-precision all-reduce ({})",
                          times(time(*allreduce) / time(winner)), duration_text(time(*allreduce)));
    }
    if (compressed) {
      const double gain = time(winner) / time(*compressed);
      line += gain > 1 ? fmt::format(
                             "; the best compressed run ({}) gains {:.1f} %, less than a "
                             "prediction is good for",
                             named(*compressed), 100 * (gain - 1))
                       : fmt::format("; the best compressed run takes {} as long ({})",
                                     times(1 / gain), named(*compressed));
    } else if (any_of([](const PlannedRun& run) { return run.candidate.compressed; })) {
      line += "; no compressed run gets there";
    } else {
      line += "; no compressed run was tried";
    }
    return line + "." + missed(allreduce);
  }

 private:
  template <typename Is>
  bool any_of(const Is& is) const {
    return std::any_of(runs_.begin(), runs_.end(), is);
  }
  std::string missed(Index allreduce) const {
    if (allreduce ||
        !any_of([](const PlannedRun& run) { return run.candidate.words == "allreduce"; })) {
      return "";
    }
    return goal_ == Goal::target ? " Full-precision all-reduce does not reach the target."
                                 : " Full-precision all-reduce does not come to its end.";
  }

  const std::vector<PlannedRun>& runs_;
  Goal goal_;
};

void add_early_ends(const std::vector<PlannedRun>& runs, Verdict& verdict) {
  for (const PlannedRun& run : runs) {
    if (const std::string why = early_end(run.result); !why.empty()) {
      verdict.lines.push_back(fmt::format("{} ended early: {}.", run.candidate.words, why));
    }
  }
}

std::string as_word(const std::string& text) {
  return text.find_first_of(" ;*?'\"$") == std::string::npos ? text : fmt::format("'{}'", text);
}

}  // namespace

std::optional<double> PlannedRun::seconds_per_round() const {
  const auto rounds = result.at("rounds").get<double>();
  if (!early_end(result).empty() || rounds == 0) {
    return std::nullopt;
  }
  return result.at("virtual_s").get<double>() / rounds;
}

std::optional<double> PlannedRun::error() const {
  const auto simulated = seconds_per_round();
  return simulated ? std::optional(candidate.seconds_per_round / *simulated - 1) : std::nullopt;
}

std::optional<double> time_of(const PlannedRun& run, Goal goal) {
  if (goal == Goal::epoch) {
    return run.seconds_per_round();
  }
  const Json& time = run.result.at("time_to_target_s");
  return time.is_number() ? std::optional(time.get<double>()) : std::nullopt;
}

Verdict judge(const std::vector<PlannedRun>& runs, Goal goal) {
  const Speaker say(runs, goal);
  const Index compressed =
      first_of(runs, goal, [](const Candidate& one) { return one.compressed; });
  const Index plain = first_of(runs, goal, [](const Candidate& one) { return !one.compressed; });
  const Index allreduce =
      first_of(runs, goal, [](const Candidate& one) { return one.words == "allreduce"; });
  Verdict verdict;
  if (!compressed && !plain) {
    verdict.lines = {
        goal == Goal::target
            ? "No run reaches the target in its rounds: give [task] more rounds, another lr, "
              "or an easier [target]."
            : "No run comes to its end."};
    add_early_ends(runs, verdict);
    return verdict;
  }
  verdict.compress =
      compressed && (!plain || say.time(*plain) > kWorthwhile * say.time(*compressed));
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
  add_early_ends(runs, verdict);
  return verdict;
}

std::string train_command(const std::string& words, const Scenario& scenario) {
  std::string command = fmt::format("sotto train --nodes={}", scenario.nodes);
  for (const std::string& word : train_words(words, scenario.task_words)) {
    command += fmt::format(" {}", as_word(word));
  }
  const std::uint64_t seed = scenario.task.common.seed;
  return seed == 0 ? command : fmt::format("{} --seed={}", command, seed);
}

}  // namespace sotto::cli
