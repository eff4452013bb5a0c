// What nodes lose, and when they learn of it, to the nanosecond.
#include <string>

#include <doctest/doctest.h>

#include "sim/asymmetric.h"

namespace sotto::test::faults_test {

namespace {

constexpr SimTime kMs = 1'000'000;

SimulatorOptions blocking(Round rounds) {
  SimulatorOptions options;
  options.rounds = rounds;
  options.timeout = 2'000 * kMs;
  return options;
}

std::shared_ptr<const Topology> pair() { return graph_of(2, {{0, 1}, {1, 0}}); }

bool names(const Status& status, const std::string& text) {
  return status.message().find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("what a crash finds under way is lost, and the news takes the way of the dead") {
  auto options = blocking(3);
  options.events = {{.at = 500 * kMs, .node = 1, .kind = NodeEvent::Kind::crash}};
  // Node 1's frame of round 0 would arrive at 1 s.
  const auto report =
      play(pair(), platform_of(2, {{0, 1, kMs}, {1, 0, 1'000 * kMs}}), options).nodes[0];
  CHECK(report.rounds == 0);
  CHECK(report.status.fault() == Fault::peer_lost);
  CHECK(report.end == 1'500 * kMs);
}

TEST_CASE("who sends to a node that dies learns of it by the way back, if that is open") {
  // 0 → 1 → 2 → 0: node 0 hears nothing from node 1, whose receipt it waits for.
  const auto graph = graph_of(3, {{0, 1}, {1, 2}, {2, 0}});
  const Platform open =
      platform_of(3, {{0, 1, 50 * kMs}, {1, 0, 20 * kMs}, {1, 2, 1'000 * kMs}, {2, 0, kMs}});
  auto options = blocking(3);
  options.transport.send_buffer_bytes = 1;
  options.events = {{.at = 10 * kMs, .node = 1, .kind = NodeEvent::Kind::crash}};
  const auto with_cut = [&](LinkId link) {
    Platform cut = open;
    cut.cut({&link, 1}, 5 * kMs, kNever);
    return play(graph, cut, options);
  };
  for (const auto& report : {play(graph, open, options), with_cut(0)}) {
    CHECK(report.nodes[0].end == 30 * kMs);
    CHECK(names(report.nodes[0].status, "node 1 is lost"));
  }
  CHECK(with_cut(1).nodes[0].end > 1'000 * kMs);
  // Node 2 hears from node 1, a second later, or nothing at all.
  const auto told = play(graph, open, options).nodes[2];
  CHECK(told.end == 1'010 * kMs);
  CHECK(told.status.fault() == Fault::peer_lost);
  const auto untold = with_cut(2).nodes[2];
  CHECK(untold.end == 2'000 * kMs);
  CHECK(untold.status.fault() == Fault::deadline);
}

TEST_CASE("a deadline runs from when a node last heard something") {
  auto options = blocking(1);
  options.timeout = 60'000 * kMs;
  options.nodes.assign(3, {});
  options.nodes[2].start = 90'000 * kMs;
  const auto everyone = graph_of(3, {{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}});
  const Platform platform = make_star(3, kUnlimited, kMs);
  const auto ended = play(everyone, platform, options).nodes[0];
  CHECK(ended.end == 60'001 * kMs);
  CHECK(ended.status.message() == "node 0, round 0: nothing was heard for 60 s from node 2");
  options.nodes[1].start = 45'000 * kMs;
  for (const NodeReport& node : play(everyone, platform, options).nodes) {
    CHECK_MESSAGE(node.status.ok(), node.status.message());
  }
}

TEST_CASE("frames that never left are not counted, nor sent after their sender's end") {
  auto options = blocking(1);
  options.transport = TransportModel::gloo();
  options.events = {{.at = 5 * kMs, .node = 1, .kind = NodeEvent::Kind::vanish}};
  // Each hears at 10 ms that its frame is awaited.
  const auto report = play(pair(), make_star(2, kUnlimited, 10 * kMs), options);
  REQUIRE(report.edges.size() == 2);
  CHECK(report.edges[0].frames == 1);
  CHECK(report.edges[0].bytes == 1000);
  CHECK(report.edges[1].frames == 0);
  CHECK(report.edges[1].bytes == 0);
  CHECK(report.nodes[0].rounds == 0);
  // 0 → 1 → 2 → 0: node 0 hears of node 2's end long before it hears that its frame is awaited.
  options.events = {{.at = 5 * kMs, .node = 2, .kind = NodeEvent::Kind::crash}};
  const auto closed = play(
      graph_of(3, {{0, 1}, {1, 2}, {2, 0}}),
      platform_of(3, {{0, 1, kMs}, {1, 0, 100 * kMs}, {1, 2, kMs}, {2, 0, kMs}, {0, 2, 50 * kMs}}),
      options);
  CHECK(closed.nodes[0].end == 6 * kMs);
  CHECK(closed.edges[0].from == 0);
  CHECK(closed.edges[0].frames == 0);
}

TEST_CASE("a node that ends before it was there has lived no time") {
  auto options = blocking(1);
  options.nodes.assign(2, {});
  options.nodes[1].start = 100 * kMs;
  options.events = {{.at = 50 * kMs, .node = 1, .kind = NodeEvent::Kind::crash}};
  const auto report = play(pair(), make_star(2, kUnlimited, kMs), options);
  CHECK(report.nodes[1].start == 50 * kMs);
  for (const NodeReport& node : report.nodes) {
    CHECK(node.compute + node.codec + node.wire + node.idle == node.end - node.start);
  }
}

TEST_CASE("a run in which all stand still for good ends then, whatever links do later") {
  Platform platform = platform_of(2, {{0, 1, kMs}, {1, 0, kMs}});
  constexpr SimTime kLater = 3'600'000 * kMs;
  platform.add_change({.at = kLater, .link = 0, .bytes_per_s = 1e6, .latency = kMs});
  auto options = blocking(1'000'000);
  options.nodes[0].compute.seconds = 0.01;
  options.events = {{.at = 100 * kMs, .node = 0, .kind = NodeEvent::Kind::suspend},
                    {.at = 100 * kMs, .node = 1, .kind = NodeEvent::Kind::suspend},
                    {.at = 2 * kLater, .node = 1, .kind = NodeEvent::Kind::suspend}};
  const auto report = play(pair(), platform, options);
  CHECK(report.end == 100 * kMs);
  CHECK(report.nodes[0].status.fault() == Fault::deadline);
  options.events[2].kind = NodeEvent::Kind::resume;
  CHECK(play(pair(), platform, options).end > 2 * kLater);
}

}  // namespace sotto::test::faults_test
