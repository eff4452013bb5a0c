// What an upgrade is worth, by `sotto simulate --upgrades`.
#include <map>
#include <string>

#include <doctest/doctest.h>

#include "cli/scenario_text.h"

namespace sotto::test::upgrades_test {

namespace {

/// The part that each upgrade saves of the scenario's one run.
std::map<std::string, double> savings(const std::string& nodes, const std::string& network,
                                      const std::string& more = "", int count = 4) {
  const Scratch scratch;
  const auto json =
      simulated(scratch,
                "sotto-scenario = 1\nrun = [\"allreduce\"]\ntiming-only = true\n[nodes]\ncount = " +
                    std::to_string(count) + "\n" + nodes + "\n[network]\n" + network +
                    "\n[task]\nmodel = \"softmax\"\nrounds = 5\n" + more,
                {"--upgrades"});
  std::map<std::string, double> saved;
  for (const auto& one : json.at("upgrades")) {
    CHECK(one.at("run") == "allreduce");
    CHECK(one.at("before_s") == json.at("runs")[0].at("virtual_s"));
    saved[one.at("upgrade")] = one.at("saved").get<double>();
  }
  return saved;
}

doctest::Approx about(double value) { return doctest::Approx(value).epsilon(1e-3); }

}  // namespace

TEST_CASE("an upgrade saves the part that it makes shorter") {
  // Six phases of 10 ms a round, gradients of 40 ms, which all wait for: 100 ms, of which the
  // latencies are 60.
  const auto saved = savings("gradient = \"40 ms\"", "link = { latency = \"10 ms\" }");
  REQUIRE(saved.size() == 2);
  CHECK(saved.at("link: 5 ms") == about(0.3));
  CHECK(saved.at("gradients: in half the time") == about(0.2));
}

TEST_CASE("where all nodes have other lines, one upgrade widens them all") {
  std::string hosts = "hosts = [";
  for (int node = 0; node < 4; ++node) {
    hosts += "{ nodes = \"" + std::to_string(node) + "\", up = \"" + std::to_string(node + 1) +
             " Mbit/s\" }, ";
  }
  const std::string network = "link = { latency = \"1 ms\" }\n";
  CHECK(savings("gradient = \"1 ms\"", network + hosts + "]").contains("up of node 2: 6 Mbit/s"));
  // Nine of them.
  hosts = "hosts = [";
  for (int node = 0; node < 9; ++node) {
    hosts += "{ nodes = \"" + std::to_string(node) + "\", up = \"" + std::to_string(node + 1) +
             " Mbit/s\" }, ";
  }
  const auto saved = savings("gradient = \"1 ms\"", network + hosts + "]", "", 9);
  CHECK(saved.contains("up: all 9 rates twice as wide"));
  CHECK_FALSE(saved.contains("up of node 2: 6 Mbit/s"));
  CHECK(saved.at("up: all 9 rates twice as wide") > 0.3);
}

TEST_CASE("a connection that is as narrow both ways gains by both ways alone") {
  const auto saved = savings("gradient = \"1 ms\"",
                             "link = { latency = \"0.1 ms\" }\n"
                             "hosts = [{ nodes = \"3\", up = \"1 Mbit/s\", down = \"1 Mbit/s\" }]");
  const double both = saved.at("connection of node 3: twice as wide both ways");
  CHECK(both > 0.3);
  CHECK(saved.at("up of node 3: 2 Mbit/s") < both / 2);
  CHECK(saved.at("down of node 3: 2 Mbit/s") < both / 2);
}

TEST_CASE("each link, trunk, connection, channel and slow group is an upgrade of its own") {
  const auto saved =
      savings("gradient = \"1 ms\"\nstragglers = [{ nodes = \"1\", slower = 3 }]",
              "link = { bandwidth = \"1 Gbit/s\" }\n"
              "between = [{ from = \"0\", to = \"1\", link = { bandwidth = \"1 Mbit/s\" } }, "
              "{ from = \"2\", to = \"3\", link = { bandwidth = \"2 Mbit/s\" }, one-way = true }]\n"
              "hosts = [{ nodes = \"2-3\", up = \"100 Mbit/s\" }]\n"
              "shared = [{ nodes = \"3\", bandwidth = \"500 Mbit/s\" }]\n"
              "trunk = [{ name = \"ocean\", nodes = \"0-1\", link = { bandwidth = \"800 Mbit/s\", "
              "latency = \"10 us\" } }]");
  for (const char* name : {"link: 2 Gbit/s", "between node 0 and node 1: 2 Mbit/s",
                           "from node 2 to node 3: 4 Mbit/s", "ocean: 1.6 Gbit/s", "ocean: 5 µs",
                           "up of nodes 2-3: 200 Mbit/s", "channel of node 3: 1 Gbit/s",
                           "node 1: as quick as the others", "gradients: in half the time"}) {
    CAPTURE(name);
    CHECK(saved.contains(name));
  }
  CHECK(saved.size() == 9);
  // The slowest link holds up every phase.
  CHECK(saved.at("between node 0 and node 1: 2 Mbit/s") > 0.2);
  CHECK(saved.at("up of nodes 2-3: 200 Mbit/s") < 0.05);
}

TEST_CASE("the table of upgrades has the most useful first") {
  const Scratch scratch;
  const auto ended = simulate(scratch, scenario(kNodes, kNetwork), {"--upgrades"});
  REQUIRE(ended.status == 0);
  const auto at = [&](const std::string& text) { return ended.out.find("\n" + text); };
  CHECK(at("upgrade ") < at("link: "));
  CHECK(at("link: ") < ended.out.find("\ntime to the end with one upgrade at a time"));
}

}  // namespace sotto::test::upgrades_test
