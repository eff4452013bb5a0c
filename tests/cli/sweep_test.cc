// Scenarios whose runs are played with several values of some keys.
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cli/scenario_text.h"
#include "observe/observed.h"

namespace sotto::test::sweep_test {

namespace {

std::string timed(const std::string& sweep, const std::string& latency = "10 ms") {
  return "sotto-scenario = 1\nrun = [\"allreduce\", \"dpsgd ring\"]\ntiming-only = true\n" + sweep +
         "[nodes]\ncount = 4\ngradient = \"1 ms\"\n[network]\nlink = { latency = \"" + latency +
         "\" }\nhosts = [{ nodes = \"0\", up = \"10 Mbit/s\" }, { nodes = \"1\", up = \"10 "
         "Mbit/s\" }]\ntrunk = [{ name = \"a\", nodes = \"0\", link = { latency = \"1 ms\" } }, { "
         "name = \"b\", nodes = \"1\", link = { latency = \"1 ms\" } }]\n[task]\nmodel = "
         "\"softmax\"\nrounds = 5\n";
}

}  // namespace

TEST_CASE("each point of a sweep is the scenario with its value") {
  const Scratch scratch;
  const auto swept =
      simulated(scratch, timed("sweep = { \"network.link.latency\" = [\"5 ms\", \"20 ms\"] }\n"));
  REQUIRE(swept.at("runs").size() == 4);
  std::size_t run = 0;
  for (const char* latency : {"5 ms", "20 ms"}) {
    const auto alone = simulated(scratch, timed("", latency));
    for (const auto& expected : alone.at("runs")) {
      const auto& found = swept.at("runs")[run++];
      CHECK(found.at("name") == expected.at("name").get<std::string>() + " @ latency=" + latency);
      CHECK(found.at("sweep").at("network.link.latency") == latency);
      CHECK(found.at("trace_sha256") == expected.at("trace_sha256"));
      CHECK(expected.at("sweep").is_null());
    }
  }
}

TEST_CASE("two keys are swept together, in lists of tables all or the one with the name") {
  const Scratch scratch;
  const auto end = [&](const std::string& sweep) {
    std::map<std::string, double> ends;
    const auto json = simulated(scratch, timed("sweep = { " + sweep + " }\n"));
    for (const auto& run : json.at("runs")) {
      ends[run.at("name")] = run.at("virtual_s").get<double>();
    }
    return ends;
  };
  const auto both =
      end("\"network.hosts.up\" = [\"1 Mbit/s\", \"100 Mbit/s\"], \"task.rounds\" = [2, 4]");
  REQUIRE(both.size() == 8);
  CHECK(both.at("allreduce @ up=1 Mbit/s, rounds=4") >
        3 * both.at("allreduce @ up=100 Mbit/s, rounds=4"));
  CHECK(both.at("dpsgd ring @ up=1 Mbit/s, rounds=4") >
        1.5 * both.at("dpsgd ring @ up=1 Mbit/s, rounds=2"));
  const auto one = end("\"network.trunk.b.link.latency\" = [\"1 ms\", \"50 ms\"]");
  const auto all = end("\"network.trunk.link.latency\" = [\"1 ms\", \"50 ms\"]");
  CHECK(one.at("allreduce @ latency=1 ms") == all.at("allreduce @ latency=1 ms"));
  CHECK(one.at("allreduce @ latency=50 ms") > one.at("allreduce @ latency=1 ms"));
  CHECK(all.at("allreduce @ latency=50 ms") > one.at("allreduce @ latency=50 ms"));
}

TEST_CASE("points are named by what tells their keys apart, in the file's order") {
  const Scratch scratch;
  const auto names = [&](const std::string& sweep) {
    std::vector<std::string> all;
    const auto json = simulated(scratch, timed("sweep = { " + sweep + " }\n"));
    for (const auto& run : json.at("runs")) {
      all.push_back(run.at("name"));
    }
    return all;
  };
  CHECK(names("\"task.rounds\" = [2], \"network.link.latency\" = [\"1 ms\"]") ==
        std::vector<std::string>{"allreduce @ rounds=2, latency=1 ms",
                                 "dpsgd ring @ rounds=2, latency=1 ms"});
  CHECK(names("\"network.trunk.b.link.latency\" = [\"1 ms\"], \"network.link.latency\" = "
              "[\"2 ms\"]")
            .front() == "allreduce @ b.link.latency=1 ms, network.link.latency=2 ms");
}

TEST_CASE("each run of a sweep has the events and the target of its own point") {
  const Scratch scratch;
  const auto ended = simulate(
      scratch,
      "sotto-scenario = 1\nrun = \"dpsgd ring\"\nsweep = { \"target.accuracy\" = [0.1, 1], "
      "\"events.at\" = [\"1 ms\", \"900 s\"] }\n[nodes]\ncount = 4\ngradient = \"1 ms\"\n"
      "[network]\nlink = { latency = \"1 ms\" }\n[[events]]\nat = \"5 s\"\nfrom = "
      "\"0\"\nto = \"1\"\nlink = { latency = \"2 ms\" }\n[costs]\nper-node-hour = 1\n"
      "[target]\naccuracy = 0.1\n[task]\ntask = \"digits,train=300,test=60\"\nmodel = "
      "\"softmax\"\nrounds = 6\neval-every = 2\n",
      {"--json", "-"});
  REQUIRE(ended.status == 0);
  const auto json = nlohmann::json::parse(ended.out);
  CHECK_FALSE(json.contains("events"));
  REQUIRE(json.at("runs").size() == 4);
  for (const auto& run : json.at("runs")) {
    const bool hard = run.at("sweep").at("target.accuracy") == "1";
    const bool late = run.at("sweep").at("events.at") == "900 s";
    CHECK(run.at("time_to_target_s").is_null() == hard);
    CHECK(run.at("missed").get<std::string>().empty() == !hard);
    CHECK(run.at("bill_to_target").is_null() == hard);
    CHECK(run.at("events").size() == (late ? 0 : 1));
    CHECK(run.at("events_after_the_end").size() == (late ? 1 : 0));
  }
}

TEST_CASE("two keys make a map of which run is first where") {
  const Scratch scratch;
  const auto page = scratch.path() / "m.html";
  const auto ended =
      simulate(scratch,
               timed("sweep = { \"network.hosts.up\" = [\"1 Mbit/s\", \"100 Mbit/s\"], "
                     "\"task.rounds\" = [2, 4] }\n"),
               {"--html", page.string()});
  REQUIRE(ended.status == 0);
  CHECK(contains(text_of_file(page), "<th>network.hosts.up \\ task.rounds</th>"));
  CHECK(contains(text_of_file(page), "First to the end"));
}

TEST_CASE("a page draws the sweep") {
  const Scratch scratch;
  const auto page = scratch.path() / "s.html";
  const auto ended = simulate(
      scratch, timed("sweep = { \"network.hosts.up\" = [\"1 Mbit/s\", \"100 Mbit/s\"] }\n"),
      {"--html", page.string()});
  REQUIRE(ended.status == 0);
  CHECK(contains(text_of_file(page), "network.hosts.up, Mbit/s"));
  CHECK(contains(text_of_file(page), "Virtual seconds to the end"));
}

TEST_CASE("a sweep that makes no sense is refused") {
  const Scratch scratch;
  const auto refusal = [&](const std::string& sweep, const Arguments& more = {}) {
    const auto ended = simulate(scratch, timed("sweep = " + sweep + "\n"), more);
    CHECK(ended.status == 2);
    return ended.err;
  };
  CHECK(contains(refusal("3"), "s.toml:4: sweep: it is a table"));
  CHECK(contains(refusal("{}"), "one key or two"));
  CHECK(contains(refusal("{ \"network.link.latency\" = \"1 ms\" }"), "give a list"));
  CHECK(contains(refusal("{ \"network.link.latency\" = [] }"), "give a list"));
  CHECK(
      contains(refusal("{ \"network.lnk.latency\" = [\"1 ms\"] }"), "the file has nothing there"));
  CHECK(contains(refusal("{ \"network.link.latenzy\" = [\"1 ms\"] }"), "latenzy"));
  const std::string wrong = refusal("{ \"network.link.latency\" = [\"1 ms\", \"soon\"] }");
  CHECK(contains(wrong, "s.toml:4: sweep: with latency=soon: "));
  // What a value breaks elsewhere in the file has its line.
  CHECK(contains(refusal("{ \"nodes.count\" = [1] }"), "with count=1: "));
  CHECK(contains(refusal("{ \"nodes.count\" = [1] }"), "s.toml:10: network.hosts"));
  CHECK(contains(refusal("{ \"network.link.latency\" = [\"1 ms\", \"1 ms\"] }"),
                 "'1 ms' stands there twice"));
  CHECK(contains(refusal("{ \"nodes.count\" = [2, 3], \"task.lr\" = [1, 2], \"seed\" = [1] }"),
                 "one key or two"));
  CHECK(contains(refusal("{ \"network.link.latency\" = [\"1 ms\"] }", {"--upgrades"}),
                 "leave out one of the two"));
  const std::string many = refusal(
      "{ \"nodes.count\" = [900000, 900001, 900002, 900003, 900004, "
      "900005, 900006, 900007, 900008, 900009, 900010, 900011] }");
  CHECK(contains(many, "more than 10000000 nodes together"));
  const auto plan =
      run({"plan", scratch.write("p.toml", timed("sweep = { \"task.rounds\" = [2] }\n")).string()});
  CHECK(plan.status == 2);
  CHECK(contains(plan.err, "a plan is of one scenario"));
}

}  // namespace sotto::test::sweep_test
