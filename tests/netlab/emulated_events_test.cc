// From a scenario's events to what the network does, and one run that ends early.
#include <atomic>

#include <doctest/doctest.h>

#include "bench/netlab/prediction/comparison.h"
#include "bench/netlab/prediction/comparison_report.h"
#include "bench/netlab/prediction/emulated_events.h"
#include "bench/netlab/prediction/scenario_text.h"
#include "support/skip.h"

namespace sotto::test::emulated_events_test {

using namespace sotto::netlab;

namespace {

constexpr SimTime kMs = 1'000'000;
using Kind = EmulatedEvent::Kind;

MadeScenario three() {
  return {.title = "three",
          .words = "dpsgd ring",
          .nodes = 3,
          .mbit_per_s = 20,
          .latency_ms = 2,
          .loss = 0.001,
          .gradient = "5 ms",
          .model = "softmax",
          .rounds = 100};
}

std::vector<EmulatedEvent> of(const std::string& events) {
  return emulated_events(scenario_from(three().text() + events));
}

}  // namespace

TEST_CASE("events of nodes and links come in the order of its time") {
  const auto all =
      of("[[events]]\nat = \"2 s\"\nresume = \"1\"\n"
         "[[events]]\nat = \"1 s\"\nsuspend = \"1\"\n"
         "[[events]]\nat = \"3 s\"\ncrash = \"0\"\nvanish = \"2\"\n"
         "[[events]]\nat = \"1500 ms\"\nfrom = \"0\"\nto = \"2\"\none-way = true\n"
         "link = { bandwidth = \"8 Mbit/s\", latency = \"30 ms\" }\n");
  REQUIRE(all.size() == 5);
  CHECK(all[0].kind == Kind::suspend);
  CHECK(all[0].at == 1'000 * kMs);
  CHECK(all[0].host == 1);
  CHECK(all[1].kind == Kind::link);
  CHECK(all[1].host == 0);
  CHECK(all[1].to == 2);
  CHECK(all[1].shape.bytes_per_s == 1e6);
  CHECK(all[1].shape.latency == 30 * kMs);
  CHECK(all[1].shape.loss == 0.001);  // stays
  CHECK(all[2].kind == Kind::resume);
  CHECK(all[3].kind == Kind::crash);
  CHECK(all[4].kind == Kind::vanish);
  CHECK(all[4].host == 2);
}

TEST_CASE("a partition cuts the links between its parts, and heals") {
  const auto all = of("[[events]]\nat = \"1 s\"\npartition = [\"0\", \"1\"]\nfor = \"500 ms\"\n");
  REQUIRE(all.size() == 4);
  for (const EmulatedEvent& one : all) {
    CHECK(one.kind == Kind::link);
    CHECK(one.host + one.to == 1);  // node 2 is in no part
    CHECK((one.shape.bytes_per_s == 0) == (one.at == 1'000 * kMs));
    CHECK((one.shape.bytes_per_s > 0) == (one.at == 1'500 * kMs));
    CHECK(one.shape.latency == 2 * kMs);
  }
}

TEST_CASE("who joins later is started later") {
  CHECK(last_start(scenario_from(three().text())) == 0);
  CHECK(last_start(scenario_from(three().text() + "[[events]]\nat = \"700 ms\"\njoin = \"1\"\n")) ==
        700 * kMs);
}

TEST_CASE("a real node that is killed takes those down that were predicted to go") {
  if (const auto why = unavailable()) {
    SOTTO_SKIP(*why);
  }
  const std::atomic<bool> stop{false};
  const RealProgram program = {.path = SOTTO_PROGRAM, .stop = &stop};
  const MadeScenario made = three();
  const Comparison found =
      compare(scenario_from(made.text() + "[[events]]\nat = \"200 ms\"\ncrash = \"1\"\n"),
              made.words, "gloo", program);
  if (!found.links.empty() && !found.links[0].good()) {
    SOTTO_SKIP(found.failure);
  }
  CAPTURE(found.failure);
  REQUIRE(found.ok());
  CHECK(found.predicted_faults.size() == 3);
  CHECK(found.same_nodes_failed());
  CHECK(found.as_predicted());
  REQUIRE_FALSE(found.measured_faults.empty());
  CHECK(found.measured_faults.front().node == 1);
  CHECK(found.measured_faults.front().at_s >= 0.2);
  CHECK(found.measured_s >= 0.2);
  CHECK(fault_lines(found).size() == 3);
}

}  // namespace sotto::test::emulated_events_test
