#include "bench_ring.h"

#include <charconv>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/sim/rehearsal.h>
#include <sotto/sim/simulator.h>
#include <sotto/sim/time.h>

#include "program_output.h"
#include "ring_exchange.h"
#include "signals.h"

namespace sotto::cli {
namespace {

/// For one game of SimGrid's; the longest is a few times as long as what is measured.
constexpr std::chrono::minutes kPatience{10};

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
  RehearsalShape shape;
  shape.timing = RehearsalShape::Timing::blocking;
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
  Simulator simulator(ring_platform(nodes, contention), options, make_rehearsals(shape, ring));
  const auto start = std::chrono::steady_clock::now();
  const auto report = simulator.run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return RingScore{static_cast<double>(report.messages), took.count()};
}

Result<RingScore> play_simgrid(const std::string& player, int nodes, bool contention, int rounds) {
  const auto text = program_output(
      {player, fmt::to_string(nodes), contention ? "contended" : "alone", fmt::to_string(rounds)},
      Deadline::after(kPatience));
  if (!text.ok()) {
    return text.status();
  }
  RingScore score = {.messages = static_cast<double>(ring_messages(nodes, contention)) * rounds};
  const auto [end, error] =
      std::from_chars(text->data(), text->data() + text->size(), score.seconds);
  if (error != std::errc()) {
    return Status(Fault::unexpected, fmt::format("{} printed no time: '{}'", player, *text));
  }
  return score;
}

Result<double> measure_ring(const RingGame& game, double seconds) {
  for (int rounds = 2;; rounds *= 2) {
    const auto score = game(rounds);
    if (!score.ok()) {
      return score.status();
    }
    if (stop_requested()) {
      return Status(Fault::unexpected, "interrupted");
    }
    if (score->seconds >= seconds / 2) {
      return score->messages / score->seconds;
    }
  }
}

}  // namespace sotto::cli
