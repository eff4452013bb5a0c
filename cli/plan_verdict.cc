#include "plan_verdict.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <sotto/base/ids.h>

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
    return goal_ == Goal::target ? "target in " + seconds_text(time(run))
                                 : seconds_text(time(run)) + " a round";
  }
  /// "dpsgd ring, 12.3 s"
  std::string named(std::size_t run) const {
    return fmt::format("{}, {}", words(run), seconds_text(time(run)));
  }

  std::string compress(std::size_t winner, Index plain, Index allreduce) const {
    std::string line = fmt::format("{}: {}", words(winner), reaches(winner));
    if (allreduce) {
      line += fmt::format(", {} sooner than full-precision all-reduce ({})",
                          times(time(*allreduce) / time(winner)), seconds_text(time(*allreduce)));
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
                          times(time(*allreduce) / time(winner)), seconds_text(time(*allreduce)));
    }
    if (compressed) {
      const double gain = time(winner) / time(*compressed);
      line += gain > 1 ? fmt::format(
                             "; the best compressed run ({}) gains {:.1f} %, less than a "
                             "prediction is good for",
                             named(*compressed), 100 * (gain - 1))
                       : fmt::format("; the best compressed run takes {} as long ({})",
                                     times(1 / gain), named(*compressed));
    } else {
      line += "; no compressed run gets there";
    }
    return line + "." + missed(allreduce);
  }

 private:
  std::string missed(Index allreduce) const {
    const bool tried = std::any_of(runs_.begin(), runs_.end(), [](const PlannedRun& run) {
      return run.candidate.words == "allreduce";
    });
    return tried && !allreduce ? " Full-precision all-reduce does not reach the target." : "";
  }

  const std::vector<PlannedRun>& runs_;
  Goal goal_;
};

/// Settings that say where a run takes place and what is written, not what is trained.
constexpr std::array kNotOfTraining = {"transport", "checkpoint", "checkpoint_every", "resume",
                                       "bind",      "insecure",   "timeout"};

std::string as_word(const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  return text.find_first_of(" ;*?'\"$") == std::string::npos ? text : "'" + text + "'";
}

}  // namespace

double PlannedRun::seconds_per_round() const {
  return result.at("virtual_s").get<double>() / result.at("rounds").get<double>();
}

double PlannedRun::error() const { return candidate.seconds_per_round / seconds_per_round() - 1; }

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
        "No run reaches the target in its rounds: give [task] more rounds, another lr, "
        "or an easier [target]."};
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
  return verdict;
}

std::string seconds_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.3g} ms", 1000 * seconds) : fmt::format("{:.4g} s", seconds);
}

std::string train_command(const Json& used, const Json& plain) {
  std::string command = "sotto train";
  for (const auto& [key, value] : used.items()) {
    const bool of_training =
        std::find(kNotOfTraining.begin(), kNotOfTraining.end(), key) == kNotOfTraining.end();
    if (!of_training || value.is_null() || (plain.contains(key) && plain.at(key) == value)) {
      continue;
    }
    std::string option = key;
    std::replace(option.begin(), option.end(), '_', '-');
    if (value.is_boolean()) {
      command += value.get<bool>() ? " --" + option : "";
    } else {
      command += fmt::format(" --{} {}", option, as_word(value));
    }
  }
  return command;
}

}  // namespace sotto::cli
