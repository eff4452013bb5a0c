// Virtual time ends after 292 years: what lies beyond is told, and nothing wraps or stands still.
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include <sotto/sim/time.h>

#include "job.h"

namespace sotto::test::end_of_time_test {

namespace {

constexpr SimTime kSecond = 1'000'000'000;
constexpr double kYear = 365.25 * 24 * 3600;

/// Two nodes that wait for each other as long as it takes.
SimulatorOptions patient(Round rounds) {
  SimulatorOptions options;
  options.rounds = rounds;
  options.timeout = kNever;
  options.nodes.resize(2);
  return options;
}

SimulationReport play(const SimulatorOptions& options, const Platform& platform) {
  Job job{.nodes = 2};
  return simulate(job, options, platform);
}

Platform star() { return make_star(2, 1e9, 1'000'000); }

/// Every node that is there says that time ends, and names what would come later.
void check_told(const SimulationReport& report, const std::string& what) {
  CHECK(report.end >= 0);
  CHECK(report.end < kNever);
  for (const NodeReport& node : report.nodes) {
    CHECK(node.status.fault() == Fault::deadline);
    CAPTURE(node.status.message());
    CHECK(node.status.message().find("virtual time ends after 292 years") != std::string::npos);
    CHECK(node.status.message().find(what) != std::string::npos);
    CHECK(node.compute + node.codec + node.wire + node.idle == node.end - node.start);
  }
}

}  // namespace

TEST_CASE("spans that are multiplied, or come as numbers of nanoseconds, end with time") {
  CHECK(multiple(3, 5) == 15);
  CHECK(multiple(0, kNever) == 0);
  CHECK(multiple(std::numeric_limits<std::uint64_t>::max(), 0) == 0);
  CHECK(multiple(1, kNever) == kNever);
  CHECK(multiple(2, kNever / 2) == kNever - 1);
  CHECK(multiple(2, kNever / 2 + 1) == kNever);
  CHECK(multiple(std::numeric_limits<std::uint64_t>::max(), 1) == kNever);
  CHECK(from_nanoseconds(1.9) == 1);
  CHECK(from_nanoseconds(9.3e18) == kNever);
  CHECK(from_nanoseconds(std::numeric_limits<double>::infinity()) == kNever);
  CHECK(from_nanoseconds(std::numeric_limits<double>::quiet_NaN()) == kNever);
}

TEST_CASE("gradients that come after the end of time are named, the first as well as the last") {
  SimulatorOptions options = patient(1'000'000'000);
  options.nodes[0].compute.seconds = options.nodes[1].compute.seconds = 91 * kYear;
  check_told(play(options, star()), "the gradient of node 0 in round 3");
  options.nodes[0].compute.seconds = 1;
  options.nodes[1].compute.seconds = 300 * kYear;
  check_told(play(options, star()), "the gradient of node 1 in round 0");
  options.nodes[1].compute = {
      .kind = ComputeTime::Kind::lognormal, .seconds = 1e300, .slowdown = 1e300};
  check_told(play(options, star()), "the gradient of node 1 in round 0");
}

TEST_CASE("messages that arrive after the end of time are named") {
  check_told(play(patient(1), make_star(2, 1e-12, 1'000'000)), "a message from node 0 to node 1");
  SimulatorOptions far = patient(1);
  far.network.latency_factor = 1e12;
  check_told(play(far, make_star(2, 1e9, 10'000 * kSecond)), "a message from node 0 to node 1");
  SimulatorOptions windows = patient(1);
  windows.network = NetworkModel::linux_tcp();
  check_told(play(windows, make_star(2, 1e-12, 1'000'000)), "a message from node 0 to node 1");
}

TEST_CASE("codecs that end after the end of time, and nodes that start then, are named") {
  SimulatorOptions coded = patient(1'000'000'000);
  coded.nodes[0].codec.encode_s_per_byte = coded.nodes[1].codec.encode_s_per_byte = 1e6;
  coded.nodes[0].compute.seconds = coded.nodes[1].compute.seconds = 290 * kYear;
  coded.nodes[0].codec.seconds_per_exchange = coded.nodes[1].codec.seconds_per_exchange = 1e6;
  coded.overlap = false;
  check_told(play(coded, star()), "node 0");
  SimulatorOptions absent = patient(1);
  absent.nodes[1].start = kNever;
  check_told(play(absent, star()), "node 1 would start later");
}

TEST_CASE("a cut link, and a node suspended for good, are not taken for the end of time") {
  Platform platform = star();
  const std::vector<LinkId> all = {0, 1};
  platform.cut(all, 0, kNever);
  for (const NodeReport& node : play(patient(1), platform).nodes) {
    CHECK_FALSE(node.status.ok());
    CHECK(node.status.message().find("292") == std::string::npos);
  }
  SimulatorOptions options = patient(1);
  options.nodes[0].compute.seconds = options.nodes[1].compute.seconds = 1;
  options.events = {{.at = 1, .node = 0, .kind = NodeEvent::Kind::suspend},
                    {.at = 1, .node = 1, .kind = NodeEvent::Kind::suspend}};
  for (const NodeReport& node : play(options, star()).nodes) {
    CHECK(node.status.message().find("nothing is left that could wake it") != std::string::npos);
  }
}

}  // namespace sotto::test::end_of_time_test
