// Runs with several seeds, runs with labels, and runs that are interrupted, as a user sees them.
#include <csignal>
#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "cli/scenario_text.h"
#include "observe/observed.h"

namespace sotto::test::simulate_seeds_test {

using nlohmann::json;

TEST_CASE("several seeds give means, the lowest and the highest") {
  const Scratch scratch;
  const auto page = scratch.path() / "s.html";
  const auto file = scratch.path() / "s.json";
  const auto ended = simulate(scratch, scenario(kNodes, kNetwork, "seed = 7\n"),
                              {"--seeds", "3", "--html", page.string(), "--json", file.string()});
  REQUIRE(ended.status == 0);
  CHECK(contains(ended.out, "means over 3 seeds, the lowest and the highest in brackets"));
  CHECK(contains(ended.out, "run 6 of 6: dcd quant:8 ring, seed 9"));
  CHECK(contains(text_of_file(page), "dcd quant:8 ring"));
  const json result = json::parse(std::ifstream(file));
  REQUIRE(result.at("runs").size() == 6);
  for (std::size_t run = 0; run < 6; ++run) {
    CHECK(result.at("runs")[run].at("config").at("seed") == 7 + run % 3);
  }
  // With one seed nothing stands in brackets.
  const auto one = simulate(scratch, scenario(kNodes, kNetwork));
  CHECK_FALSE(contains(one.out, "brackets"));
  CHECK_FALSE(simulated(scratch, scenario(kNodes, kNetwork)).contains("over_seeds"));
  const auto none = simulate(scratch, scenario(kNodes, kNetwork), {"--seeds", "0"});
  CHECK(none.status == 2);
  CHECK(contains(none.err, "at least one is needed"));
}

TEST_CASE("a run is called by its label") {
  const Scratch scratch;
  const auto named = [&](const std::string& runs, const Arguments& more = {}) {
    return simulate(scratch, scenario(kNodes, kNetwork, "", runs), more);
  };
  const std::string labelled =
      "\"allreduce\", { run = \"dcd quant:8 ring\", label = \"eight bits\" }";
  const json result = named(labelled, {"--json", "-"}).json();
  CHECK(result.at("runs")[0].at("name") == "allreduce");
  CHECK(result.at("runs")[1].at("name") == "eight bits");
  CHECK(result.at("runs")[1].at("compressor").get<std::string>().starts_with("quant:8"));
  CHECK(contains(named(labelled, {"--upgrades"}).out, ", eight bits\n"));
  // Two labels make two runs of the same words.
  CHECK(named("\"dpsgd\", { run = \"dpsgd\", label = \"again\" }").status == 0);
  const auto refused = [&](const std::string& run) {
    const auto ended = named(run);
    CHECK(ended.status == 2);
    return ended.err;
  };
  CHECK(contains(refused("{ run = \"dpsgd\", label = \"\" }"), "s.toml:2: run.label: "));
  CHECK(contains(refused("{ run = \"dpsgd\", label = \"a @ b\" }"), "without an @"));
  CHECK(contains(refused("{ label = \"a\" }"), "s.toml:2: run.run: "));
  CHECK(contains(refused("{ run = \"dpsgd\", lable = \"a\" }"), "did you mean label?"));
  CHECK(contains(refused("{ run = \"dpsgdd\", label = \"a\" }"), "did you mean dpsgd?"));
  CHECK(contains(refused("\"dcd\", { run = \"dpsgd\", label = \"dcd\" }"), "twice"));
  CHECK(contains(refused("3"), "it must be a string or a table"));
}

TEST_CASE("Ctrl-C keeps what a simulation has found, in the table and in files") {
  const Scratch scratch;
  const auto file = scratch.path() / "s.json";
  const auto csv = scratch.path() / "s.csv";
  const std::string text =
      scenario(kNodes, kNetwork, "",
               "\"dpsgd ring rounds=4\", \"dcd ring rounds=1000000000\", \"allreduce\"");
  Process process(command({"simulate", scratch.write("i.toml", text).string(), "--json",
                           file.string(), "--csv", csv.string()}));
  REQUIRE(process.wait_for("run 2 of 3"));
  process.send(SIGINT);
  const auto ended = process.wait();
  CHECK(ended.status == 128 + SIGINT);
  CHECK(contains(ended.out, "dcd ring rounds=1000000000 ended early: interrupted"));
  CHECK(contains(ended.out, "not run"));
  const json result = json::parse(std::ifstream(file));
  CHECK(result.at("interrupted") == true);
  REQUIRE(result.at("runs").size() == 2);
  CHECK(result.at("runs")[0].at("interrupted") == false);
  CHECK(result.at("runs")[1].at("interrupted") == true);
  CHECK(result.at("runs")[1].at("virtual_s").get<double>() > 0);
  REQUIRE(result.at("failed").size() == 1);
  CHECK(result.at("failed")[0].at("name") == "allreduce");
  CHECK(contains(text_of_file(csv), "dpsgd ring rounds=4,4,"));
}

TEST_CASE("Ctrl-C while upgrades are valued is told") {
  const Scratch scratch;
  const std::string text =
      scenario(kNodes, "link = { bandwidth = \"1 Mbit/s\" }", "", "\"dpsgd ring rounds=3000\"");
  Process process(command({"simulate", scratch.write("u.toml", text).string(), "--upgrades"}));
  REQUIRE(process.wait_for("upgrade 1 of 2"));
  process.send(SIGINT);
  const auto ended = process.wait();
  CHECK(ended.status == 128 + SIGINT);
  CHECK(contains(ended.out, "interrupted: the other upgrades were not played"));
}

}  // namespace sotto::test::simulate_seeds_test
