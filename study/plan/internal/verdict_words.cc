#include <sotto/study/plan/internal/verdict_words.h>

#include <algorithm>

#include <fmt/format.h>

#include <sotto/study/plan/plan_verdict.h>
#include <sotto/study/quality.h>
#include <sotto/study/units.h>

namespace sotto::study {
namespace {

using Index = std::optional<std::size_t>;

/// A node's model that is so far behind the average has not come together with it.
constexpr double kApart = 0.1;

std::string factor_text(double factor) { return fmt::format("{:.3g} ×", factor); }

/// How far the worst node's own model is behind the average in the end; none: it is not known.
std::optional<double> lag_of(const PlannedRun& run) {
  const auto& last = run.simulated.result.final;
  return last && last->own ? std::optional(quality_of(last->mean) - last->own->worst)
                           : std::nullopt;
}

}  // namespace

std::string VerdictWords::compress(std::size_t winner, Index plain, Index allreduce) const {
  std::string line = fmt::format("{}: {}", words(winner), reaches(winner));
  if (allreduce) {
    line += over_allreduce(winner, *allreduce);
  }
  if (plain && !is_allreduce(*plain)) {
    line +=
        fmt::format(", {} {} than the best uncompressed run ({})",
                    factor_text(figure(*plain) / figure(winner)), ranking_.better(), named(*plain));
  }
  return line + "." + missed(allreduce);
}

std::string VerdictWords::plain(std::size_t winner, Index compressed, Index allreduce) const {
  std::string line = fmt::format("{}{}: {}", any_compressed() ? "Do not compress: " : "",
                                 words(winner), reaches(winner));
  if (!is_allreduce(winner) && allreduce) {
    line += over_allreduce(winner, *allreduce);
  }
  if (compressed) {
    line += "; " + against_compressed(figure(winner) / figure(*compressed), *compressed);
  } else {
    line += any_compressed() ? "; no compressed run gets there" : "; no compressed run was tried";
  }
  return line + "." + (compressed ? more_bytes(winner, *compressed) : "") + missed(allreduce);
}

/// How the best compressed run, which is `gain` times as good as the winner, is set beside it.
std::string VerdictWords::against_compressed(double gain, std::size_t compressed) const {
  if (gain > kWorthwhile) {
    return fmt::format("the best compressed run ({}) is {} {}, but not with every seed",
                       named(compressed), factor_text(gain), ranking_.better());
  }
  if (gain * kWorthwhile > 1) {
    return fmt::format(
        "from the best compressed run ({}) it differs by no more than a prediction is good for",
        named(compressed));
  }
  return ranking_.money ? fmt::format("the best compressed run costs {} as much ({})",
                                      factor_text(1 / gain), named(compressed))
                        : fmt::format("the best compressed run takes {} as long ({})",
                                      factor_text(1 / gain), named(compressed));
}

std::string VerdictWords::apart(std::size_t winner) const {
  const auto lag = lag_of(runs_[winner]);
  if (!lag || *lag < kApart) {
    return "";
  }
  const bool shares = quality_at(runs_[winner].simulated.result.final->mean).share;
  const auto distance = [shares](double far) {
    return shares ? fmt::format("{:.0f} points", 100 * far) : fmt::format("{:.2f} of R²", far);
  };
  std::string line = fmt::format(
      "The target is the averaged model's; the worst node's own is {} behind it in the end.",
      distance(*lag));
  Index together;
  for (std::size_t k = 0; k < runs_.size(); ++k) {
    const auto reached = figure_of(runs_[k], ranking_);
    if (reached && lag_of(runs_[k]).value_or(kApart) < kApart &&
        (!together || *reached < figure(*together))) {
      together = k;
    }
  }
  return together ? fmt::format("{} Less than {}: {}.", line, distance(kApart), named(*together))
                  : line;
}

std::string VerdictWords::early_ends() const {
  const auto early = [](const PlannedRun& run) {
    return !run.simulated.result.early_end().empty();
  };
  const auto first = std::find_if(runs_.begin(), runs_.end(), early);
  if (first == runs_.end()) {
    return "";
  }
  const auto more = std::count_if(first + 1, runs_.end(), early);
  return fmt::format("{} ended early: {}{}.", first->label, first->simulated.result.early_end(),
                     more > 0 ? fmt::format("; and so did {} more", more) : "");
}

/// "target in 12.3 s", "target for 0.42 EUR", "45 ms a round"
std::string VerdictWords::reaches(std::size_t run) const {
  return ranking_.goal == Goal::target
             ? fmt::format("target {} {}", ranking_.money ? "for" : "in", text(run))
             : text(run) + " a round";
}

/// "dpsgd ring, 12.3 s"
std::string VerdictWords::named(std::size_t run) const {
  return fmt::format("{}, {}", words(run), text(run));
}

/// Bytes that a node of a run sends until the target, or in a round.
double VerdictWords::bytes(std::size_t run) const {
  return ranking_.goal == Goal::target ? runs_[run].simulated.result.bytes_to_target.value_or(0)
                                       : runs_[run].candidate.bytes_per_round;
}

/// What it costs not to compress.
std::string VerdictWords::more_bytes(std::size_t winner, std::size_t compressed) const {
  return bytes(compressed) > 0 && bytes(winner) > bytes(compressed)
             ? fmt::format(" It sends {} a node{}, {} as much as the best compressed run ({}).",
                           amount(bytes(winner)),
                           ranking_.goal == Goal::target ? " until then" : " and round",
                           factor_text(bytes(winner) / bytes(compressed)),
                           amount(bytes(compressed)))
             : "";
}

bool VerdictWords::any_compressed() const {
  return std::any_of(runs_.begin(), runs_.end(),
                     [](const PlannedRun& run) { return run.candidate.compressed; });
}

std::string VerdictWords::over_allreduce(std::size_t winner, std::size_t allreduce) const {
  return fmt::format(", {} {} than full-precision all-reduce ({})",
                     factor_text(figure(allreduce) / figure(winner)), ranking_.better(),
                     text(allreduce));
}

std::string VerdictWords::missed(Index allreduce) const {
  const bool tried = std::any_of(runs_.begin(), runs_.end(),
                                 [](const PlannedRun& run) { return run.candidate.baseline(); });
  if (!tried || allreduce) {
    return "";
  }
  return ranking_.goal == Goal::target ? " Full-precision all-reduce does not reach the target."
                                       : " Full-precision all-reduce does not come to its end.";
}

}  // namespace sotto::study
