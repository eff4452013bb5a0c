#include "contender_result.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <sotto/study/units.h>

#include "bench/support/statistics.h"
#include "contender_job.h"

namespace sotto::netlab {
namespace {

Status malformed(const std::string& what) {
  return {Fault::malformed, fmt::format("it printed no result: {}", what)};
}

Result<Json> last_json(const std::string& output) {
  const std::string line = output.starts_with("{") ? output : last_line(output);
  Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) {
    return malformed(line.empty() ? "nothing at all" : line.substr(0, 200));
  }
  return json;
}

/// Times are positive and finite, whoever measured them.
Result<double> time_of(const Json& json, const char* name) {
  if (!json.contains(name) || !json.at(name).is_number()) {
    return malformed(fmt::format("'{}' is no number", name));
  }
  const double value = json.at(name);
  if (!(value > 0) || !std::isfinite(value)) {
    return malformed(fmt::format("'{}' is {}", name, value));
  }
  return value;
}

bool among(Baseline baseline, const std::vector<Baseline>& baselines) {
  return std::ranges::find(baselines, baseline) != baselines.end();
}

}  // namespace

Result<TimedRun> timed_run_from(const std::string& output) {
  const auto json = last_json(output);
  if (!json.ok()) {
    return json.status();
  }
  const auto seconds = time_of(*json, "round_s");
  if (!seconds.ok()) {
    return seconds.status();
  }
  TimedRun timed = {.round_s = *seconds, .bytes = std::nullopt, .wire = std::nullopt};
  if (json->contains("bytes_per_round") && json->at("bytes_per_round").is_number()) {
    timed.bytes = json->at("bytes_per_round").get<double>();
  }
  return timed;
}

Result<TimeToAccuracy> time_to_accuracy_from(const std::string& output, double accuracy) {
  const auto json = last_json(output);
  if (!json.ok()) {
    return json.status();
  }
  if (!json->contains("history") || !json->at("history").is_array() ||
      json->at("history").empty()) {
    return malformed("'history' is missing or empty");
  }
  TimeToAccuracy finish;
  for (const Json& point : json->at("history")) {
    const auto seconds = time_of(point, "time_s");
    const auto round = time_of(point, "round");
    if (!seconds.ok() || !round.ok()) {
      return (seconds.ok() ? round : seconds).status();
    }
    const double found = point.contains("accuracy") && point.at("accuracy").is_number()
                             ? point.at("accuracy").get<double>()
                             : std::numeric_limits<double>::quiet_NaN();
    if (found >= accuracy && !finish.seconds) {
      finish.seconds = *seconds;
      finish.round = static_cast<std::uint64_t>(*round);
    }
    finish.best = std::max(finish.best, found);
    finish.round_s = *seconds / *round;
  }
  return finish;
}

bench::MedianSpread ContenderResult::spread() const {
  std::vector<double> found;
  for (const auto& value : seconds) {
    if (value) {
      found.push_back(*value);
    }
  }
  return bench::spread_of(found);
}

std::string ContenderResult::failure() const {
  return participation == Participation::skipped ? "SKIPPED: " + why : why;
}

std::vector<double> speedups(const ContenderResult& one, const std::vector<ContenderResult>& all,
                             const std::vector<Baseline>& baselines) {
  std::vector<double> ratios;
  ratios.reserve(one.seconds.size());
  for (std::size_t repeat = 0; repeat < one.seconds.size(); ++repeat) {
    double fastest = std::numeric_limits<double>::infinity();
    for (const ContenderResult& other : all) {
      if (among(other.contender.baseline, baselines) && repeat < other.seconds.size() &&
          other.seconds[repeat]) {
        fastest = std::min(fastest, *other.seconds[repeat]);
      }
    }
    if (std::isfinite(fastest) && one.seconds[repeat]) {
      ratios.push_back(fastest / *one.seconds[repeat]);
    }
  }
  return ratios;
}

const ContenderResult* best_of(const std::vector<ContenderResult>& all,
                               const std::vector<Baseline>& baselines) {
  const ContenderResult* best = nullptr;
  for (const ContenderResult& one : all) {
    const double median = one.spread().median;
    if (among(one.contender.baseline, baselines) && std::isfinite(median) &&
        (best == nullptr || median < best->spread().median)) {
      best = &one;
    }
  }
  return best;
}

std::string failure_of_all(const std::vector<ContenderResult>& all) {
  const bool some =
      std::ranges::any_of(all, [](auto& one) { return one.participation == Participation::runs; });
  return some || all.empty() ? ""
                             : fmt::format("every contender has failed; {}: {}",
                                           all.front().contender.name, all.front().why);
}

std::string spread_text(const bench::MedianSpread& spread) {
  return std::isfinite(spread.median) ? fmt::format("{} … {}", study::duration_text(spread.low),
                                                    study::duration_text(spread.high))
                                      : "–";
}

std::string ratio_text(const std::vector<double>& ratios) {
  const double median = bench::spread_of(ratios).median;
  return std::isfinite(median) ? fmt::format("{:.2f} ×", median) : "–";
}

}  // namespace sotto::netlab
