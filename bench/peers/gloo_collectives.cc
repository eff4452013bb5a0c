// The program `gloo_peer`: one process of a job that averages a gradient again and again through
// one of Gloo's own collectives, and steps along it. Rank 0 prints "warm" when the measured rounds
// begin, and JSON at the end.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "collectives.h"
#include "round_times.h"

namespace {

using sotto::peers::Averager;

/// The learning rate of the step that follows.
constexpr float kRate = 0.01F;

struct Request {
  sotto::peers::Place place;
  sotto::peers::CollectiveOptions collective;
  sotto::peers::RoundTimesRequest times;
  bool unfused = false;
  std::size_t elements = 1'000'000;
};

void add_options(CLI::App& program, Request& request) {
  add_place_options(program, request.place);
  add_round_options(program, request.times);
  program.add_option("--collective", request.collective.name,
                     "ring, bcube, halving-doubling, sharded or hierarchical");
  program.add_flag("--half", request.collective.half, "Values travel as fp16");
  program.add_flag("--unfused", request.unfused, "One tensor after the other, not one buffer");
  program.add_option("--group", request.collective.group_size, "Members of a hierarchy's group");
  program.add_option("--elements", request.elements, "Length of the vector");
}

/// All started from rank + 1, and averages of averages are the average.
void check_average(Averager& averager, int size) {
  const double expected = (size + 1) / 2.0;
  for (const float value : averager.values()) {
    if (!(std::abs(value - expected) <= 0.01 * expected)) {
      throw std::runtime_error(fmt::format("the average is {} and not {}", value, expected));
    }
  }
}

void measure(Request& request) {
  request.collective.fused = !request.unfused;
  const auto& place = request.place;
  Averager averager(place, request.collective, request.elements);
  std::ranges::fill(averager.values(), static_cast<float>(place.rank + 1));
  std::vector<float> x(request.elements, 0.0F);
  const auto times = time_rounds(
      request.times, {.rank = place.rank,
                      .round = [&] { averager.run_and_step(kRate, x); },
                      .meet = [&] { averager.meet_again(); },
                      .slowest = [&](double seconds) { return averager.largest(seconds); }});
  check_average(averager, place.size);
  if (place.rank == 0) {
    print_round_times(times, averager.bytes());
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("One process of a job that averages through a collective of Gloo's",
                   "gloo_peer");
  Request request;
  add_options(program, request);
  return sotto::peers::run_peer(program, argc, argv, [&] { measure(request); });
}
