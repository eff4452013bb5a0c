#include "bench_ring.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/number.h>
#include <sotto/console/signals.h>
#include <sotto/sim/ring_exchange.h>
#include <sotto/sim/simulator.h>
#include <sotto/sim/time.h>
#include <sotto/sim/timing_job.h>

#include "program_output.h"

namespace sotto::cli {
namespace {

/// For one game of SimGrid's; the longest is a few times as long as what is measured.
constexpr std::chrono::minutes kPatience{10};
/// Repeats of each game, the best of which counts: what else the machine does only ever slows
/// it.
constexpr int kRepeats = 5;

Platform ring_platform(int nodes, bool contention) {
  const SimTime latency = from_seconds(kRingLatencyS);
  Platform platform = make_star(nodes, ring_bandwidth(0, false), latency);
  for (Rank host = 0; contention && host < nodes; ++host) {
    const LinkSpec way = {.bytes_per_s = ring_bandwidth(host, true), .latency = latency / 2};
    platform.set_egress(host, way);
    platform.set_ingress(host, way);
  }
  return platform;
}

}  // namespace

Result<RingScore> play_sotto(int nodes, bool contention, int rounds) {
  SimulatorOptions options;
  options.rounds = static_cast<Round>(rounds);
  StandInShape shape;
  shape.timing = StandInShape::Timing::blocking;
  shape.frame_bytes = kRingMessageBytes;
  std::vector<WeightedEdge> edges;
  for (Rank host = 0; host < nodes; ++host) {
    edges.push_back({host, (host + 1) % nodes, 0.25});
    if (contention) {
      edges.push_back({host, (host + nodes - 1) % nodes, 0.25});
    }
  }
  const auto ring = std::make_shared<const Topology>(
      "ring", nodes, std::vector<std::vector<WeightedEdge>>{std::move(edges)});
  Simulator simulator(ring_platform(nodes, contention), options, make_stand_ins(shape, ring));
  const std::clock_t start = std::clock();
  const auto report = simulator.run();
  const auto took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  return RingScore{static_cast<double>(report.messages), took};
}

Result<RingScore> play_simgrid(const std::string& player, int nodes, bool contention, int rounds) {
  const auto text = program_output(
      {player, fmt::to_string(nodes), contention ? "contended" : "alone", fmt::to_string(rounds)},
      kPatience);
  if (!text.ok()) {
    return text.status();
  }
  RingScore score = {.messages = static_cast<double>(ring_messages(nodes, contention)) * rounds};
  std::string_view printed = *text;
  const auto seconds = take_number<double>(printed);
  if (!seconds) {
    return Status(Fault::unexpected, fmt::format("{} printed no time: '{}'", player, *text));
  }
  score.seconds = *seconds;
  return score;
}

Result<std::vector<double>> measure_rings(std::span<const RingGame> games, double seconds) {
  struct Measured {
    int rounds = 1;
    double best = 0;  ///< messages a second
  };
  std::vector<Measured> measured(games.size());
  const auto play = [&](std::size_t i) -> Result<double> {
    const auto score = games[i](measured[i].rounds);
    if (!score.ok()) {
      return score.status();
    }
    if (console::stop_requested()) {
      return Status(Fault::unexpected, "interrupted");
    }
    if (score->seconds > 0) {
      measured[i].best = std::max(measured[i].best, score->messages / score->seconds);
    }
    return score->seconds;
  };
  for (std::size_t i = 0; i < games.size(); ++i) {
    for (double took = 0; took < seconds / 8;) {
      measured[i].rounds *= 2;
      measured[i].best = 0;
      const auto played = play(i);
      if (!played.ok()) {
        return played.status();
      }
      took = *played;
    }
  }
  for (int repeat = 1; repeat < kRepeats; ++repeat) {
    for (std::size_t i = 0; i < games.size(); ++i) {
      if (const auto played = play(i); !played.ok()) {
        return played.status();
      }
    }
  }
  std::vector<double> best;
  best.reserve(measured.size());
  for (const Measured& one : measured) {
    best.push_back(one.best);
  }
  return best;
}

}  // namespace sotto::cli
