#include "laps.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace sotto::peers {
namespace {

using Clock = std::chrono::steady_clock;

/// For who reads "warm", before more goes over the wire; less than any TCP takes for idle.
constexpr std::chrono::milliseconds kMarkTime{50};

double seconds(Clock::duration span) { return std::chrono::duration<double>(span).count(); }

}  // namespace

void add_lap_options(CLI::App& program, LapRequest& request) {
  program.add_option("--warm-up", request.warm_up, "Rounds before those that are measured")
      ->check(CLI::Range(0, 1'000'000'000));
  program.add_option("--rounds", request.rounds, "Rounds that are measured")
      ->check(CLI::Range(1, 1'000'000'000));
}

Laps run_laps(const LapRequest& request, const Racer& racer) {
  for (int round = 0; round < request.warm_up; ++round) {
    racer.round();
  }
  racer.end();
  racer.meet();
  if (racer.rank == 0) {
    fmt::print("warm\n");
    std::fflush(stdout);
  }
  std::this_thread::sleep_for(kMarkTime);
  racer.meet();
  Laps laps;
  const auto begin = Clock::now();
  auto before = begin;
  for (int round = 0; round < request.rounds; ++round) {
    racer.round();
    if (round + 1 == request.rounds) {
      racer.end();
    }
    const auto now = Clock::now();
    laps.sorted.push_back(seconds(now - before));
    before = now;
  }
  laps.total_s = racer.slowest(seconds(before - begin));
  std::ranges::sort(laps.sorted);
  return laps;
}

void print_laps(const Laps& laps, const std::optional<double>& bytes) {
  nlohmann::ordered_json result = {
      {"rounds", laps.sorted.size()},
      {"round_s", laps.total_s / static_cast<double>(laps.sorted.size())},
      {"median_s", laps.sorted[laps.sorted.size() / 2]},
      {"min_s", laps.sorted.front()},
      {"max_s", laps.sorted.back()},
      {"bytes_per_round", nullptr}};
  if (bytes) {
    result["bytes_per_round"] = *bytes;
  }
  fmt::print("{}\n", result.dump());
  std::fflush(stdout);
}

}  // namespace sotto::peers
