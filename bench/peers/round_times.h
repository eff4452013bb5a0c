// How the peers that `netlab race` compares are timed: warm-up rounds, the line "warm" from which
// on the caller counts what the network carries, and the rounds that are measured.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <CLI/App.hpp>

namespace sotto::peers {

struct RoundTimesRequest {
  /// Rounds before those that are measured, after which all go at their pace: sotto over Gloo tells
  /// of its receives ahead from the third on, PyTorch's DDP orders its buckets after its first.
  int warm_up = 4;
  int rounds = 10;  ///< rounds that are measured, at least one
};

/// `request` must live as long as the program.
void add_round_options(CLI::App& program, RoundTimesRequest& request);

/// What is measured.
struct TimedPeer {
  int rank = 0;
  std::function<void()> round;
  std::function<void()> meet;             ///< returns when all processes are there
  std::function<double(double)> slowest;  ///< the longest of all processes' times, on rank 0
  std::function<void()> end = [] {};      ///< ends what is still under way after a round
};

/// Seconds from the common start on.
struct RoundTimes {
  double total_s = 0;  ///< the time until the slowest process ended its last round; rank 0 knows it
  std::vector<double> sorted;  ///< the seconds of each round of this process
};

/// Rank 0 prints "warm" when the measured rounds begin.
RoundTimes time_rounds(const RoundTimesRequest& request, const TimedPeer& peer);

/// Prints the result as JSON; `bytes` is what a process sends in a round, where that is known.
void print_round_times(const RoundTimes& times, const std::optional<double>& bytes);

}  // namespace sotto::peers
