// The stretches of SimulatorHooks.phase against the sums of NodeReport.
#include <sotto/sim/simulator.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/sim/timing_job.h>
#include <sotto/topology/registry.h>

namespace sotto::test::phases_test {

TEST_CASE("how busy a link was is told of what it could carry, changes and cuts included") {
  constexpr SimTime kMs = 1'000'000;
  SimulatorOptions options;
  options.rounds = 40;
  options.nodes[0].compute.seconds = 1e-6;
  options.overlap = false;
  const auto busiest = [&](const Platform& platform) {
    const StandInShape shape = {.timing = StandInShape::Timing::blocking, .frame_bytes = 100'000};
    Simulator simulator(platform, options, make_stand_ins(shape, make_topology("ring", 2)));
    const SimulationReport report = simulator.run();
    double most = 0;
    for (const LinkReport& link : report.links) {
      most = std::max(most, link.utilisation);
    }
    return most;
  };
  // Frames of 100 ms, one after the other, without latency: the links are always busy.
  Platform platform = make_star(2, 1e6, 0);
  CHECK(busiest(platform) == doctest::Approx(1).epsilon(1e-3));
  for (LinkId link = 0; link < 4; ++link) {
    platform.add_change({.at = 1000 * kMs, .link = link, .bytes_per_s = 2e5});
  }
  CHECK(busiest(platform) == doctest::Approx(1).epsilon(1e-3));
  platform.cut(std::vector<LinkId>{0, 1, 2, 3}, 500 * kMs, 900 * kMs);
  CHECK(busiest(platform) == doctest::Approx(1).epsilon(1e-3));
}

TEST_CASE("a node's phases follow each other without gaps, and add up to its report") {
  constexpr SimTime kMs = 1'000'000;
  SimulatorOptions options;
  options.rounds = 20;
  options.nodes.assign(
      6, {.compute = {.kind = ComputeTime::Kind::lognormal, .seconds = 0.01, .spread = 0.5},
          .codec = {.encode_s_per_byte = 1e-8, .decode_s_per_byte = 2e-8}});
  options.nodes[2].start = 35 * kMs;
  options.events = {{.at = 90 * kMs, .node = 4, .kind = NodeEvent::Kind::suspend},
                    {.at = 150 * kMs, .node = 4, .kind = NodeEvent::Kind::resume}};
  using Sums = std::array<SimTime, 4>;
  std::vector<Sums> sums(6, Sums{});
  std::vector<std::pair<SimTime, SimTime>> lives(6, {-1, -1});  // from, until
  SimulatorHooks hooks;
  hooks.phase = [&](Rank rank, Phase phase, SimTime from, SimTime until) {
    auto& [start, end] = lives[static_cast<std::size_t>(rank)];
    start = start < 0 ? from : start;
    CHECK((end < 0 || end == from));
    CHECK(until > from);
    end = until;
    sums[static_cast<std::size_t>(rank)][static_cast<std::size_t>(phase)] += until - from;
  };
  const StandInShape shape = {
      .timing = StandInShape::Timing::after_gradient, .frame_bytes = 20'000, .elements = 20'000};
  Simulator simulator(make_star(6, 1e6, kMs), options,
                      make_stand_ins(shape, make_topology("ring", 6)), {}, hooks);
  const SimulationReport report = simulator.run();
  for (std::size_t i = 0; i < 6; ++i) {
    CAPTURE(i);
    const NodeReport& node = report.nodes[i];
    CHECK(node.status.ok());
    CHECK(lives[i] == std::pair(node.start, node.end));
    CHECK(sums[i] == Sums{node.compute, node.codec, node.wire, node.idle});
    CHECK(node.codec > 0);
    CHECK(node.wire > 0);
  }
  CHECK(sums[4][static_cast<std::size_t>(Phase::idle)] >= 60 * kMs);
}

TEST_CASE("a codec takes as long as the vector is, however small its frame") {
  constexpr SimTime kMs = 1'000'000;
  const auto codec_of = [](std::size_t frame_bytes) {
    SimulatorOptions options;
    options.rounds = 10;
    options.nodes[0] = {.compute = {.seconds = 0.01},
                        .codec = {.encode_s_per_byte = 1e-8, .decode_s_per_byte = 2e-8}};
    const StandInShape shape = {
        .timing = StandInShape::Timing::blocking, .frame_bytes = frame_bytes, .elements = 25'000};
    Simulator simulator(make_star(2, 1e6, kMs), options,
                        make_stand_ins(shape, make_topology("ring", 2)));
    return simulator.run().nodes[0].codec;
  };
  // 100 kB take 1 ms to encode, and 2 ms to decode.
  CHECK(codec_of(100'064) == 10 * 3 * kMs);
  CHECK(codec_of(3'200) == 10 * 3 * kMs);
}

}  // namespace sotto::test::phases_test
