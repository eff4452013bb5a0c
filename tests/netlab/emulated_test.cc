// The real program on the emulated network, where this machine lets us. Needs root.
#include <atomic>

#include <doctest/doctest.h>

#include "bench/netlab/command_options.h"
#include "bench/netlab/network/probe.h"
#include "bench/netlab/network/scenario_network.h"
#include "bench/netlab/prediction/calibration.h"
#include "bench/netlab/prediction/comparison.h"
#include "bench/netlab/prediction/scenario_text.h"
#include "support/skip.h"

namespace sotto::test::emulated_test {

using namespace sotto::netlab;

namespace {

MadeScenario brief() {
  return {.title = "brief",
          .words = "dcd quant:8 ring",
          .nodes = 2,
          .mbit_per_s = 20,
          .latency_ms = 2,
          .gradient = "1 ms",
          .model = "softmax",
          .rounds = 3};
}

}  // namespace

TEST_CASE("two real nodes send the bytes and find the models of the simulation") {
  if (const auto why = unavailable()) {
    SOTTO_SKIP(*why);
  }
  const std::atomic<bool> stop{false};
  const RealProgram program = {SOTTO_PROGRAM, &stop};
  const MadeScenario made = brief();
  const Comparison found = compare(scenario_from(made.text()), made.words, "gloo", program);
  // A busy machine may make links slow, which is no fault of the code.
  if (!found.ok() && found.links.size() == 1 && !found.links[0].good()) {
    SOTTO_SKIP(found.failure);
  }
  CAPTURE(found.failure);
  REQUIRE(found.ok());
  CHECK(found.rounds == 3);
  CHECK(found.bytes_equal);
  CHECK(found.parameters_equal);
  CHECK(found.dropped == 0);
  // What is declared is a bound from below, on any machine.
  CHECK(found.links[0].round_trip_s >= 0.004);
  CHECK(found.measured_s >= 3 * 0.003);
}

TEST_CASE("who lies in a scenario lies as in the simulation over real sockets too") {
  if (const auto why = unavailable()) {
    SOTTO_SKIP(*why);
  }
  const std::atomic<bool> stop{false};
  MadeScenario made = brief();
  made.words = "robust complete";
  made.nodes = 3;
  const study::Scenario lying =
      scenario_from(made.text() + "[attack]\nnodes = \"2\"\nkind = \"noise:3\"\n");
  const Comparison found = compare(lying, made.words, "zmq", {SOTTO_PROGRAM, &stop});
  if (!found.ok() && found.links.size() == 1 && !found.links[0].good()) {
    SOTTO_SKIP(found.failure);
  }
  CAPTURE(found.failure);
  REQUIRE(found.ok());
  CHECK(found.bytes_equal);
  CHECK(found.parameters_equal);
}

TEST_CASE("what the links carry is counted, and nothing passes a link that is down") {
  if (const auto why = unavailable()) {
    SOTTO_SKIP(*why);
  }
  EmulatedNetwork network({.hosts = 2});
  REQUIRE(measure_round_trip(network, 0, 1, 3, 10).ok());
  CHECK(network.carried(0, 1).packets >= 5);
  CHECK(network.carried(0, 1).bytes >= 5 * 52);
  network.set_link(0, 1, {.bytes_per_s = 0});
  CHECK_FALSE(measure_round_trip(network, 0, 1, 1, 0.2).ok());
}

TEST_CASE("a program that fails is told, with its status, long before a run's patience ends") {
  if (const auto why = unavailable()) {
    SOTTO_SKIP(*why);
  }
  const std::atomic<bool> stop{false};
  const RealProgram program = {"/bin/false", &stop};
  const MadeScenario made = brief();
  const Comparison found = compare(scenario_from(made.text()), made.words, "gloo", program);
  if (found.links.size() == 1 && !found.links[0].good()) {
    SOTTO_SKIP(found.failure);
  }
  CAPTURE(found.failure);
  CHECK(found.failure.find("ended with status 1") != std::string::npos);
}

TEST_CASE("a program that is none is refused before anything is measured") {
  CommandOptions request;
  request.program = "/nowhere/sotto";
  CHECK_THROWS_WITH(request.real_program(),
                    doctest::Contains("--program: '/nowhere/sotto' is refused"));
  request.program = "/bin/false";
  CHECK_NOTHROW(request.real_program());
}

TEST_CASE("what cannot be emulated is refused, with what can") {
  const auto refused = [](const std::string& more) {
    try {
      check_emulable(scenario_from(brief().text() + more));
      return std::string();
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
  };
  const auto says = [&](const std::string& more, const std::string& what) {
    CAPTURE(more);
    CHECK(refused(more).find(what) != std::string::npos);
  };
  CHECK(refused("").empty());
  says("[[events]]\nat = \"1 s\"\nleave = \"1\"\n", "node 1 leaves after 1 s");
  says("[[events]]\nat = \"1 s\"\nfrom = \"0\"\nto = \"1\"\nlink = { bandwidth = \"40 Gbit/s\" }\n",
       "the links that change after 1 s: 40 Gbit/s");
  for (const char* event : {"crash = \"1\"", "vanish = \"1\"", "join = \"1\"", "suspend = \"1\"",
                            "partition = [\"0\", \"1\"]\nfor = \"1 s\"",
                            "from = \"0\"\nto = \"1\"\nlink = { latency = \"1 ms\" }"}) {
    CAPTURE(event);
    CHECK(refused(std::string("[[events]]\nat = \"1 s\"\n") + event + "\n").empty());
  }
  MadeScenario fast = brief();
  fast.mbit_per_s = 10'000;
  CHECK_THROWS_WITH(check_emulable(scenario_from(fast.text())),
                    doctest::Contains("node 0 to node 1: 10 Gbit/s cannot be emulated"));
}

TEST_CASE("a calibration says in a scenario what it found") {
  const Calibration calibration = {
      .share = 0.95,
      .window_bytes = 14480,
      .transports = {
          {"gloo", {.acknowledgements = 0.02, .seconds = 2e-4, .seconds_per_byte = 4e-9}}}};
  const auto lines = calibration_toml(calibration, "gloo");
  CHECK(lines.find("overhead = \"200 us\"") != std::string::npos);
  CHECK(lines.find("codec = \"500 MB/s\"") != std::string::npos);
  const study::Scenario scenario = calibrated(scenario_from(brief().text()), calibration, "gloo");
  CHECK(scenario.network.bandwidth_factor == 0.95);
  CHECK(scenario.network.acknowledgements == 0.02);
  CHECK(scenario.network.initial_window_bytes == 14480);
  CHECK(scenario.network.packet_bytes == 1500);
  CHECK(scenario.transport.on_demand);
  CHECK(scenario.node_specs[0].codec.seconds_per_exchange == 2e-4);
  CHECK(scenario.node_specs[1].codec.decode_s_per_byte == 2e-9);
}

}  // namespace sotto::test::emulated_test
