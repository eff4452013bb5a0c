#include "round_times.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <sotto/base/elapsed.h>

#include "bench/support/quantile.h"

namespace sotto::peers {
namespace {

using Clock = std::chrono::steady_clock;

/// For who reads "warm", before more goes over the wire; less than any TCP takes for idle.
constexpr std::chrono::milliseconds kMarkTime{50};

}  // namespace

void add_round_options(CLI::App& program, RoundTimesRequest& request) {
  program.add_option("--warm-up", request.warm_up, "Rounds before those that are measured")
      ->check(CLI::Range(0, 1'000'000'000));
  program.add_option("--rounds", request.rounds, "Rounds that are measured")
      ->check(CLI::Range(1, 1'000'000'000));
}

RoundTimes time_rounds(const RoundTimesRequest& request, const TimedPeer& peer) {
  for (int round = 0; round < request.warm_up; ++round) {
    peer.round();
  }
  peer.end();
  peer.meet();
  if (peer.rank == 0) {
    fmt::print("warm\n");
    std::fflush(stdout);
  }
  std::this_thread::sleep_for(kMarkTime);
  peer.meet();
  RoundTimes times;
  const auto begin = Clock::now();
  auto before = begin;
  for (int round = 0; round < request.rounds; ++round) {
    peer.round();
    if (round + 1 == request.rounds) {
      peer.end();
    }
    const auto now = Clock::now();
    times.sorted.push_back(seconds_of(now - before));
    before = now;
  }
  times.total_s = peer.slowest(seconds_of(before - begin));
  std::ranges::sort(times.sorted);
  return times;
}

void print_round_times(const RoundTimes& times, const std::optional<double>& bytes) {
  nlohmann::ordered_json result = {
      {"rounds", times.sorted.size()},
      {"round_s", times.total_s / static_cast<double>(times.sorted.size())},
      {"median_s", bench::median(times.sorted)},
      {"min_s", times.sorted.front()},
      {"max_s", times.sorted.back()},
      {"bytes_per_round", nullptr}};
  if (bytes) {
    result["bytes_per_round"] = *bytes;
  }
  fmt::print("{}\n", result.dump());
  std::fflush(stdout);
}

}  // namespace sotto::peers
