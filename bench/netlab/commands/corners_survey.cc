#include "corners_survey.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "bench/netlab/prediction/predicted_run.h"
#include "bench/netlab/prediction/scenario_text.h"

namespace sotto::netlab::corners {
namespace {

constexpr const char* kModel = "mlp:343";  // 272,695 parameters
/// Rounds of the first of two real runs. The second is as much longer as all further rounds
/// are: the first rounds have connections to open, receives to tell of, and Adam's variance to
/// gather.
constexpr double kFirstRounds = 3;
constexpr double kFewestMore = 3;
/// Rounds of the first of two simulated runs.
constexpr std::uint64_t kSimulatedRounds = 6;

// The simulator's points; the program runs at those in the second lists.
constexpr std::array<double, 8> kBandwidths = {5, 10, 25, 50, 100, 250, 500, 1000};
constexpr std::array<double, 4> kMeasuredBandwidths = {5, 25, 100, 1000};
constexpr std::array<double, 7> kLatencies = {0.1, 0.5, 1, 5, 10, 25, 50};
constexpr std::array<double, 4> kMeasuredLatencies = {0.1, 1, 10, 50};

MadeScenario made_at(const Place& place, std::size_t method, std::uint64_t rounds) {
  return {.title = place.name(),
          .words = kMethods[method].words,
          .nodes = kNodes,
          .mbit_per_s = place.mbit_per_s,
          .latency_ms = place.latency_ms,
          .gradient = "1 ms",
          .model = kModel,
          .batch = 32,
          .rounds = rounds};
}

}  // namespace

std::vector<double> Edge::values() const {
  return over_latency ? std::vector<double>(kLatencies.begin(), kLatencies.end())
                      : std::vector<double>(kBandwidths.begin(), kBandwidths.end());
}

bool Edge::measured(double value) const {
  const auto has = [value](const auto& list) {
    return std::ranges::find(list, value) != list.end();
  };
  return over_latency ? has(kMeasuredLatencies) : has(kMeasuredBandwidths);
}

const std::array<Edge, 4>& edges() {
  static const std::array<Edge, 4> kEdges = {
      Edge{"at 0.1 ms, low latency", false, 0.1}, Edge{"at 50 ms, high latency", false, 50},
      Edge{"at 1 Gbit/s, high bandwidth", true, 1000}, Edge{"at 5 Mbit/s, low bandwidth", true, 5}};
  return kEdges;
}

Status Survey::run() {
  for (const Edge& edge : edges()) {
    for (const double value : edge.values()) {
      for (std::size_t method = 0; method < kMethods.size(); ++method) {
        if (Status status = look(edge.at(value), method, edge.measured(value)); !status.ok()) {
          return status.with_context(
              fmt::format("{}, {}", edge.at(value).name(), kMethods[method].name));
        }
      }
    }
  }
  return {};
}

double Survey::worst() const {
  double worst = 0;
  for (const auto& [place, times] : field_) {
    for (const Times& one : times) {
      const auto measured = one.measured();
      worst = measured ? std::max(worst, std::abs(one.predicted / *measured - 1)) : worst;
    }
  }
  return worst;
}

Status Survey::look(const Place& place, std::size_t method, bool measured) {
  Times& times = field_[place][method];
  if (*program_.stop) {
    return {Fault::unexpected, "interrupted"};
  }
  if (times.predicted == 0) {
    const auto few = predict(place, method, kSimulatedRounds);
    const auto twice = predict(place, method, 2 * kSimulatedRounds);
    if (!few.ok() || !twice.ok()) {
      return few.ok() ? twice.status() : few.status();
    }
    const double round = (*twice - *few) / kSimulatedRounds;
    times.predicted = *few + (kEpochRounds - kSimulatedRounds) * round;
  }
  return measured && times.repeats.empty() ? measure(place, method, times) : Status();
}

Result<double> Survey::predict(const Place& place, std::size_t method, std::uint64_t rounds) const {
  const MadeScenario made = made_at(place, method, rounds);
  const auto run =
      predicted_run(calibrated(scenario_from(made.text()), calibration_, transport_), made.words);
  return run.ok() ? Result<double>(run->virtual_s) : run.status();
}

Status Survey::measure(const Place& place, std::size_t method, Times& times) {
  const double rounds =
      std::max(std::floor(seconds_ * kEpochRounds / times.predicted), kFirstRounds + kFewestMore);
  times.rounds = std::min(rounds, kEpochRounds);
  for (int repeat = 0; repeat < repeats_; ++repeat) {
    const auto some = run_program_for(place, method, times.rounds);
    if (!some.ok()) {
      return some.status();
    }
    double epoch = *some;
    if (times.rounds < kEpochRounds) {
      const auto first = run_program_for(place, method, kFirstRounds);
      if (!first.ok()) {
        return first.status();
      }
      epoch += (kEpochRounds - times.rounds) * (*some - *first) / (times.rounds - kFirstRounds);
    }
    times.repeats.push_back(epoch);
  }
  return {};
}

Result<double> Survey::run_program_for(const Place& place, std::size_t method,
                                       double rounds) const {
  const MadeScenario made = made_at(place, method, static_cast<std::uint64_t>(rounds));
  const Comparison found = compare(calibrated(scenario_from(made.text()), calibration_, transport_),
                                   made.words, transport_, program_);
  return found.ok() ? Result<double>(found.measured_s)
                    : Result<double>(Status(Fault::unexpected, found.failure));
}

}  // namespace sotto::netlab::corners
