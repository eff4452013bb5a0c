// Scenarios as programs read them: who is whose neighbour over what, and where a fault stands.
#include <sotto/study/scenario/scenario.h>

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/sim/time.h>

namespace sotto::test::scenario_test {

using namespace sotto::study;

namespace {

/// Lines 1 to 3 are the head, 4 and on `nodes`.
std::string text_of(const std::string& nodes, const std::string& network,
                    const std::string& more = "") {
  return "sotto-scenario = 1\nrun = \"dpsgd ring\"\ntiming-only = true\n" + nodes + "\n" + network +
         "\n[task]\nmodel = \"softmax\"\nrounds = 2\n" + more;
}

const std::string kNodes = "[nodes]\ncount = 6\ngradient = \"5 ms\"";
const std::string kNetwork = "[network]\nlink = { bandwidth = \"80 Mbit/s\", latency = \"10 ms\" }";

std::string refusal(const std::string& text) {
  try {
    (void)parse_scenario("plan.toml", text);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("a scenario without more is its nodes, one link between any two, and its runs") {
  const Scenario scenario = parse_scenario("plan.toml", text_of(kNodes, kNetwork));
  CHECK(scenario.title == "plan.toml");
  CHECK(scenario.nodes == 6);
  CHECK(scenario.timing_only);
  REQUIRE(scenario.node_specs.size() == 6);
  REQUIRE(scenario.runs.size() == 1);
  CHECK(scenario.runs[0].name == "dpsgd ring");
  CHECK(scenario.run_places[0] == "plan.toml:2: run");
  CHECK(scenario.task.nodes == 6);
  CHECK(scenario.link_between(0, 5).bytes_per_s == 10e6);
  CHECK(scenario.link_between(4, 1).latency == 10'000'000);
  CHECK(scenario.sweep.empty());
  CHECK_FALSE(scenario.has_traces());
}

TEST_CASE("the seed is the file's, unless another is given") {
  const std::string text = "seed = 7\n" + text_of(kNodes, kNetwork);
  CHECK(parse_scenario("plan.toml", text).task.seed == 7);
  CHECK(parse_scenario("plan.toml", text, 9).task.seed == 9);
}

TEST_CASE("groups name nodes, and a link between groups holds both ways unless it is one-way") {
  const std::string nodes = kNodes + "\ngroups = { east = \"0-2\", west = \"3, 4\" }";
  const auto between = [&](const std::string& more) {
    return parse_scenario("plan.toml",
                          text_of(nodes, kNetwork +
                                             "\nbetween = [{ from = \"east\", to = \"west, 5\", "
                                             "link = { latency = \"150 ms\" }" +
                                             more + " }]"));
  };
  const Scenario both = between("");
  for (const auto& [from, to] :
       std::vector<std::pair<Rank, Rank>>{{0, 3}, {4, 2}, {2, 5}, {5, 0}}) {
    CAPTURE(from);
    CHECK(both.link_between(from, to).latency == 150'000'000);
  }
  CHECK(both.link_between(0, 1).latency == 10'000'000);
  CHECK(both.link_between(3, 5).latency == 10'000'000);
  const Scenario one_way = between(", one-way = true");
  CHECK(one_way.link_between(0, 3).latency == 150'000'000);
  CHECK(one_way.link_between(3, 0).latency == 10'000'000);
}

TEST_CASE("of links between the same nodes the later holds") {
  const Scenario scenario = parse_scenario(
      "plan.toml",
      text_of(kNodes, kNetwork + "\nbetween = [{ from = \"all\", to = \"all\", link = { latency = "
                                 "\"20 ms\" } }, { from = \"0\", to = \"1\", link = { latency = "
                                 "\"30 ms\" } }]"));
  CHECK(scenario.link_between(0, 1).latency == 30'000'000);
  CHECK(scenario.link_between(1, 2).latency == 20'000'000);
}

TEST_CASE("stragglers are slower, hosts have connections of their own") {
  const Scenario scenario = parse_scenario(
      "plan.toml", text_of(kNodes + "\nstragglers = [{ nodes = \"2\", slower = 3 }]",
                           kNetwork + "\nhosts = [{ nodes = \"0-1\", up = \"8 Mbit/s\" }]"));
  CHECK(scenario.node_specs[2].compute.slowdown == 3);
  CHECK(scenario.node_specs[1].compute.slowdown == 1);
  CHECK(scenario.hosts[1].up_bytes_per_s == 1e6);
  CHECK(scenario.hosts[1].down_bytes_per_s == kUnlimited);
  CHECK(scenario.hosts[2].up_bytes_per_s == kUnlimited);
}

TEST_CASE("a fault is told with file, line and key") {
  CHECK(refusal(text_of("[nodes]\ncount = 6\ngradient = \"5 parsecs\"", kNetwork))
            .starts_with("plan.toml:6: nodes.gradient: "));
  CHECK(refusal(text_of("[nodes]\ncount = 0\ngradient = \"5 ms\"", kNetwork)) ==
        "plan.toml:5: nodes.count: it must be a whole number from 1 to 1000000");
  CHECK(refusal(text_of(kNodes, "[network]\nlink = { latency = \"1 ms\", jitter = \"2 ms\" }"))
            .starts_with("plan.toml:8: network.link.jitter: the jitter is larger"));
  CHECK(refusal(text_of(kNodes, kNetwork, "[target]\naccuracy = 95\n"))
            .ends_with("target.accuracy: it is a share, 0 to 1: 0.95 for 95 %"));
  CHECK(refusal(text_of(kNodes + "\ncolour = \"red\"", kNetwork))
            .starts_with("plan.toml:7: nodes.colour: there is no such key"));
}

TEST_CASE("what is said of a node twice is refused with both places") {
  const std::string fault = refusal(text_of(
      kNodes + "\nstragglers = [{ nodes = \"1-3\", slower = 2 },\n  { nodes = \"3\", slower = 4 }]",
      kNetwork));
  CHECK(fault.find("node 3 is made slower twice") != std::string::npos);
  CHECK(fault.starts_with("plan.toml:8: "));
  CHECK(fault.find("the other place is plan.toml:7: ") != std::string::npos);
  CHECK(refusal(text_of(kNodes, kNetwork + "\nbetween = [{ from = \"2\", to = \"2\", link = {} }]"))
            .ends_with("it is the same node as from"));
}

TEST_CASE("a sweep is a scenario a value, each with the file's own lines") {
  const Scenario scenario = parse_scenario(
      "plan.toml",
      text_of(kNodes, kNetwork,
              "[sweep]\n\"network.link.bandwidth\" = [\"8 Mbit/s\", \"16 Mbit/s\"]\n"));
  REQUIRE(scenario.sweep.size() == 2);
  CHECK(scenario.sweep[0]->name == "bandwidth=8 Mbit/s");
  CHECK(scenario.sweep[0]->scenario->link.bytes_per_s == 1e6);
  CHECK(scenario.sweep[1]->scenario->link.bytes_per_s == 2e6);
  CHECK(scenario.sweep[1]->scenario->sweep.empty());
}

}  // namespace sotto::test::scenario_test
