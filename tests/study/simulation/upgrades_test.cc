// Single upgrades of a scenario, and what they are worth, by the library.
#include <sotto/study/simulation/upgrades.h>

#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/study/simulation/scenario_runs.h>

namespace sotto::test::upgrades_test {

using namespace sotto::study;

namespace {

Scenario scenario_with(const std::string& nodes, const std::string& network) {
  return parse_scenario("text",
                        "sotto-scenario = 1\nrun = [\"allreduce\", \"dpsgd ring\"]\n"
                        "timing-only = true\n[nodes]\ncount = 4\n" +
                            nodes + "\n[network]\n" + network +
                            "\n[task]\nmodel = \"softmax\"\nrounds = 4\n");
}

std::vector<std::string> names_of(const std::vector<Upgrade>& upgrades) {
  std::vector<std::string> names;
  for (const Upgrade& upgrade : upgrades) {
    names.push_back(upgrade.name);
  }
  return names;
}

}  // namespace

TEST_CASE("each upgrade changes one thing of the scenario") {
  const Scenario scenario =
      scenario_with("gradient = \"40 ms\"\nstragglers = [{ nodes = \"3\", slower = 2 }]",
                    "link = { bandwidth = \"8 Mbit/s\", latency = \"10 ms\" }");
  const auto upgrades = upgrades_of(scenario);
  CHECK(names_of(upgrades) == std::vector<std::string>{"link: 16 Mbit/s", "link: 5 ms",
                                                       "node 3: as quick as the others",
                                                       "gradients: in half the time"});
  Scenario wider = scenario;
  upgrades[0].apply(wider);
  CHECK(wider.link.bytes_per_s == 2 * scenario.link.bytes_per_s);
  CHECK(wider.link.latency == scenario.link.latency);
  Scenario nearer = scenario;
  upgrades[1].apply(nearer);
  CHECK(nearer.link.bytes_per_s == scenario.link.bytes_per_s);
  CHECK(nearer.link.latency == scenario.link.latency / 2);
  Scenario quicker = scenario;
  upgrades[2].apply(quicker);
  CHECK(quicker.node_specs[3].compute.slowdown == 1);
  CHECK(quicker.node_specs[0].compute == scenario.node_specs[0].compute);
}

TEST_CASE("nodes with slow times of their own become as quick as the node in the middle") {
  Scenario scenario = scenario_with("gradient = \"40 ms\"", "link = { latency = \"0 ms\" }");
  scenario.node_specs[2].compute.seconds = 0.1;
  scenario.node_specs[3].compute.seconds = 0.2;
  const auto upgrades = upgrades_of(scenario);
  REQUIRE(names_of(upgrades) ==
          std::vector<std::string>{"node 2: as quick as the node in the middle",
                                   "node 3: as quick as the node in the middle",
                                   "gradients: in half the time"});
  Scenario quicker = scenario;
  upgrades[1].apply(quicker);
  CHECK(quicker.node_specs[3].compute.seconds == 0.04);
  CHECK(quicker.node_specs[2].compute.seconds == 0.1);

  // More than eight times are one upgrade.
  scenario.node_specs.resize(20, scenario.node_specs[0]);
  for (std::size_t node = 0; node < 20; ++node) {
    scenario.node_specs[node].compute.seconds = 0.1 * static_cast<double>(node + 1);
  }
  const auto many = upgrades_of(scenario);
  REQUIRE(many.size() == 2);
  CHECK(many[0].name == "gradients: the 10 slower times as the middle one");
  many[0].apply(scenario);
  CHECK(scenario.node_specs[19].compute.seconds == scenario.node_specs[9].compute.seconds);
  CHECK(scenario.node_specs[3].compute.seconds == doctest::Approx(0.4));
}

TEST_CASE(
    "clients that are drawn for each exchange have their own connections and times upgraded") {
  Scenario scenario = scenario_with("gradient = \"40 ms\"", "link = { latency = \"0 ms\" }");
  scenario.hosts.assign(4, {1e6, 1e6});
  scenario.sampling.clients = std::make_shared<const std::vector<Client>>(std::vector<Client>{
      {.gradient_s = 1, .bytes_per_s = 1e6}, {.gradient_s = 3, .bytes_per_s = 8e6}});
  const auto upgrades = upgrades_of(scenario);
  REQUIRE(names_of(upgrades) == std::vector<std::string>{"connection: all clients' twice as wide",
                                                         "gradients: in half the time"});
  Scenario changed = scenario;
  upgrades[0].apply(changed);
  upgrades[1].apply(changed);
  CHECK(changed.sampling.clients->at(1).bytes_per_s == 16e6);
  CHECK(changed.sampling.clients->at(1).gradient_s == 1.5);
  CHECK(scenario.sampling.clients->at(1).gradient_s == 3);
}

TEST_CASE("an upgrade is worth what the run gains, with the scenario's seed whatever others say") {
  const Scenario scenario =
      scenario_with("gradient = \"lognormal:40 ms,0.5\"",
                    "link = { bandwidth = \"8 Mbit/s\", latency = \"10 ms\" }");
  const auto outcomes = simulate_runs(scenario, {}, {}, 3);
  REQUIRE(by_run(outcomes).size() == 2);
  const auto values = value_upgrades(scenario, outcomes, {});
  REQUIRE(values.size() == 2 * upgrades_of(scenario).size());
  for (const UpgradeValue& value : values) {
    CAPTURE(value.upgrade);
    CAPTURE(value.run);
    const std::size_t run = value.run == "allreduce" ? 0 : 1;
    const SeedsOfRun seeds = by_run(outcomes)[run];
    CHECK(value.before_s == seeds.front().run->result.virtual_s);
    REQUIRE(value.saved());
    // A gradient of 40 ms hides the exchange of D-PSGD; all-reduce waits for its own.
    CHECK((run == 0 ? *value.saved() > 0 : *value.saved() >= 0));
    CHECK(*value.saved() < 0.6);
  }
}

TEST_CASE("a run's time is that of the first seed, or the mean of all") {
  const Scenario scenario = scenario_with("gradient = \"lognormal:40 ms,0.5\"", "link = \"wan\"");
  auto outcomes = simulate_runs(scenario, {}, {}, 3);
  double sum = 0;
  for (std::size_t seed = 0; seed < 3; ++seed) {
    sum += outcomes[seed].run->result.virtual_s;
  }
  const SeedsOfRun seeds = by_run(outcomes).front();
  REQUIRE(seeds.size() == 3);
  CHECK(time_to_target(scenario, seeds, SeedStatistic::first) == outcomes[0].run->result.virtual_s);
  CHECK(*time_to_target(scenario, seeds, SeedStatistic::mean) == doctest::Approx(sum / 3));
  // Where one has no time, a mean would hide it.
  outcomes[2].run.reset();
  CHECK(time_to_target(scenario, seeds, SeedStatistic::first));
  CHECK_FALSE(time_to_target(scenario, seeds, SeedStatistic::mean));
}

}  // namespace sotto::test::upgrades_test
