// The program `gloo_peer`: one process of a job that averages a vector again and again through one
// of Gloo's own collectives. Rank 0 prints "warm" when the measured rounds begin, and JSON at the
// end.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "collectives.h"

namespace {

using sotto::peers::Averager;
using Clock = std::chrono::steady_clock;

/// For who reads "warm", before more goes over the wire; less than any TCP takes for idle.
constexpr std::chrono::milliseconds kMarkTime{50};

struct Request {
  sotto::peers::GlooPlace place;
  sotto::peers::CollectiveOptions collective;
  bool unfused = false;
  std::size_t elements = 1'000'000;
  int warm_up = 2;
  int rounds = 10;
};

void add_options(CLI::App& program, Request& request) {
  add_place_options(program, request.place);
  program.add_option("--collective", request.collective.name,
                     "ring, bcube, halving-doubling, sharded or hierarchical");
  program.add_flag("--half", request.collective.half, "Values travel as fp16");
  program.add_flag("--unfused", request.unfused, "One tensor after the other, not one buffer");
  program.add_option("--group", request.collective.group_size, "Members of a hierarchy's group");
  program.add_option("--elements", request.elements, "Length of the vector");
  program.add_option("--warm-up", request.warm_up, "Rounds before those that are measured");
  program.add_option("--rounds", request.rounds, "Rounds that are measured");
}

double seconds(Clock::duration span) { return std::chrono::duration<double>(span).count(); }

/// All started from rank + 1, and averages of averages are the average.
void check_average(Averager& averager, int size) {
  const double expected = (size + 1) / 2.0;
  for (const float value : averager.values()) {
    if (!(std::abs(value - expected) <= 0.01 * expected)) {
      throw std::runtime_error(fmt::format("the average is {} and not {}", value, expected));
    }
  }
}

void race(Request& request) {
  request.collective.fused = !request.unfused;
  const auto& place = request.place;
  Averager averager(place, request.collective, request.elements);
  std::ranges::fill(averager.values(), static_cast<float>(place.rank + 1));
  for (int round = 0; round < request.warm_up; ++round) {
    averager.run();
  }
  averager.meet_again();
  if (place.rank == 0) {
    fmt::print("warm\n");
    std::fflush(stdout);
  }
  std::this_thread::sleep_for(kMarkTime);
  averager.meet_again();
  std::vector<double> laps;
  const auto begin = Clock::now();
  auto before = begin;
  for (int round = 0; round < request.rounds; ++round) {
    averager.run();
    const auto now = Clock::now();
    laps.push_back(seconds(now - before));
    before = now;
  }
  averager.meet_again();
  const double total = seconds(Clock::now() - begin);
  check_average(averager, place.size);
  if (place.rank == 0) {
    std::ranges::sort(laps);
    nlohmann::ordered_json result = {{"rounds", request.rounds},
                                     {"round_s", total / request.rounds},
                                     {"median_s", laps[laps.size() / 2]},
                                     {"min_s", laps.front()},
                                     {"max_s", laps.back()},
                                     {"bytes_per_round", nullptr}};
    if (const auto bytes = averager.bytes()) {
      result["bytes_per_round"] = *bytes;
    }
    fmt::print("{}\n", result.dump());
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("One process of a job that averages through a collective of Gloo's",
                   "gloo_peer");
  Request request;
  add_options(program, request);
  return sotto::peers::run_peer(program, argc, argv, [&] { race(request); });
}
