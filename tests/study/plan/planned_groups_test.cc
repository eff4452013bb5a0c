// Groups of two levels in plans: which are proposed, what they send within and between groups, and
// how long their rounds take.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/study/plan/internal/planned_groups.h>
#include <sotto/study/plan/plan_search.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/topology/node_groups.h>
#include <sotto/trainers/settings/optimizer_settings.h>

#include "support/scratch.h"
#include "support/seed.h"

namespace sotto::test::planned_groups_test {

using namespace sotto::study;

namespace {

/// Sites of so many machines each, with quick links within and `between` slower ones.
Scenario sites(int count, int machines, double between, const std::string& runs = "\"allreduce\"",
               const std::string& more = "") {
  std::string trunks;
  for (int site = 0; site < count; ++site) {
    trunks += fmt::format(
        "{{ name = \"site{0}\", nodes = \"{1}-{2}\", link = {{ latency = \"{3} ms\", "
        "bandwidth = \"{4} Mbit/s\" }} }}, ",
        site, site * machines, (site + 1) * machines - 1, 0.1 * between, 800 / between);
  }
  return parse_scenario(
      "test",
      fmt::format(
          "sotto-scenario = 1\ntiming-only = true\nrun = [{}]\n"
          "nodes = {{ count = {}, gradient = \"2 ms\" }}\n[network]\n"
          "link = {{ latency = \"0.1 ms\", bandwidth = \"800 Mbit/s\" }}\ntrunk = [{}]\n"
          "[task]\ntask = \"digits,train=64,test=8\"\nmodel = \"mlp:40\"\nrounds = 24\n{}\n",
          runs, count * machines, trunks, more));
}

constexpr double kModelBytes = 4e5;

}  // namespace

TEST_CASE("groups are proposed where links within them are much quicker") {
  const std::uint64_t seed = test::drawn_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int k = 0; k < 5; ++k) {
    const int count = draw(2, 4);
    const int machines = draw(2, 5);
    CAPTURE(count);
    CAPTURE(machines);
    const auto found = planned_groups(sites(count, machines, draw(10, 200)), kModelBytes);
    REQUIRE(found.size() == 1);
    const NodeGroups groups(read_groups(found.front()));
    CHECK(groups.count() == count);
    CHECK(groups.size() == machines);
    CHECK(groups.group_of(0) == groups.group_of(machines - 1));
    CHECK(planned_groups(sites(count, machines, 1.5), kModelBytes).empty());
  }
  CHECK(planned_groups(sites(2, 3, 50), kModelBytes).front() == "0-2;3-5");
}

TEST_CASE("groups at two levels are both proposed, and parts of unequal size are not") {
  const std::string text =
      "sotto-scenario = 1\nrun = [\"allreduce\"]\nnodes = { count = 8, gradient = \"2 ms\" }\n"
      "[network]\nlink = { latency = \"0.1 ms\", bandwidth = \"1 Gbit/s\" }\n";
  const std::string task = "[task]\ntask = \"digits,train=64,test=8\"\nmodel = \"softmax\"\n";
  const auto trunk = [](const char* name, const char* nodes, int ms) {
    return fmt::format(
        "[[network.trunk]]\nname = \"{}\"\nnodes = \"{}\"\nlink = {{ latency = \"{} ms\" }}\n",
        name, nodes, ms);
  };
  const Scenario regions = parse_scenario(
      "test", text + trunk("a", "0-1", 10) + trunk("b", "2-3", 10) + trunk("c", "4-5", 10) +
                  trunk("d", "6-7", 10) + trunk("ocean", "0-3", 200) + task);
  CHECK(planned_groups(regions, kModelBytes) ==
        std::vector<std::string>{"0-1;2-3;4-5;6-7", "0-3;4-7"});
  const Scenario uneven = parse_scenario("test", text + trunk("a", "0-2", 100) + task);
  CHECK(planned_groups(uneven, kModelBytes).empty());
}

TEST_CASE("groups are given as text, too") {
  CHECK(NodeGroups(read_groups("0-2;3-5")).text() == NodeGroups({{0, 1, 2}, {3, 4, 5}}).text());
  CHECK(NodeGroups(read_groups("0,3;1,2")).group_of(3) == 0);
  for (const char* one : {"0-3", "0,1, 2-3", "0-3;", "3 2 1 0"}) {
    CAPTURE(one);
    CHECK(NodeGroups(read_groups(one)).text() == NodeGroups({{0, 1, 2, 3}}).text());
  }
  const Scratch scratch;
  CHECK(NodeGroups(read_groups(scratch.write("0-3", "0,1\n2,3\n"))).count() == 2);
  CHECK_THROWS_AS((void)read_groups("no-file-0-3"), Error);
}

TEST_CASE("a plan prices runs in groups as they are simulated, and tries them by itself") {
  const int machines = 3;
  PlanSearch search({.lists = {.algorithms = {"allreduce", "qmean"},
                               .compressors = {"quant:8"},
                               .topologies = {}},
                     .codec = "none",
                     .budget = 6},
                    sites(2, machines, 100));
  const auto runs = search.find();
  REQUIRE(runs.ok());
  std::size_t grouped = 0;
  for (const PlannedRun& run : *runs) {
    CAPTURE(run.label);
    REQUIRE(run.error());
    // Frames that share the trunk have it in turn in the model.
    CHECK(std::abs(*run.error()) < 0.15);
    const auto within = run.simulated.result.bytes_within_groups_per_node();
    CHECK(within.has_value() == run.candidate.bytes_per_round_within.has_value());
    if (within) {
      ++grouped;
      const double rounds = static_cast<double>(run.simulated.result.rounds);
      CHECK(*within / rounds == doctest::Approx(*run.candidate.bytes_per_round_within));
      CHECK(run.simulated.result.bytes_per_node() / rounds ==
            doctest::Approx(run.candidate.bytes_per_round));
    }
  }
  CHECK(grouped > 0);
}

TEST_CASE("groups send within them in each round, and between them in the last of an interval") {
  const int machines = 4;
  PlanSearch search({.codec = "none", .budget = 1},
                    sites(2, machines, 100,
                          "\"allreduce groups=0-3;4-7\", "
                          "\"allreduce groups=0-3;4-7 communication-interval=6\""));
  const auto runs = search.find();
  REQUIRE(runs.ok());
  const auto find = [&](const std::string& name) {
    for (const PlannedRun& run : *runs) {
      if (run.candidate.run.name == name) {
        return run.candidate;
      }
    }
    FAIL(name, " is missing");
    return Candidate();
  };
  const Candidate every = find("allreduce groups=0-3;4-7");
  const Candidate local = find("allreduce groups=0-3;4-7 communication-interval=6");
  constexpr double kParameters = 40 * 784 + 40 + 10 * 40 + 10;
  constexpr double kHeader = 64;
  // 2 (g − 1)/g of the model within, and of a chunk 2 (G − 1)/G between.
  CHECK(*every.bytes_per_round_within ==
        doctest::Approx(2 * 0.75 * 4 * kParameters + 6 * kHeader).epsilon(1e-3));
  CHECK(every.bytes_per_round - *every.bytes_per_round_within ==
        doctest::Approx(4 * kParameters / machines + 2 * kHeader).epsilon(1e-3));
  CHECK(*local.bytes_per_round_within == doctest::Approx(*every.bytes_per_round_within));
  CHECK(local.bytes_per_round - *local.bytes_per_round_within ==
        doctest::Approx((every.bytes_per_round - *every.bytes_per_round_within) / 6));
}

}  // namespace sotto::test::planned_groups_test
