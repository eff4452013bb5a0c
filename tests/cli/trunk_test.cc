// Links that groups of nodes share, in scenario files.
#include <string>

#include <doctest/doctest.h>

#include "cli/scenario_text.h"

namespace sotto::test::trunk_test {

namespace {

constexpr int kRounds = 10;

/// A run of four nodes that all talk to all, with gradients that take no time.
nlohmann::json played(const std::string& network, const std::string& events = "") {
  const Scratch scratch;
  const std::string text =
      "sotto-scenario = 1\nrun = [\"dpsgd complete\"]\ntiming-only = true\n"
      "[nodes]\ncount = 4\ngradient = \"1 ns\"\ngroups = { east = \"0-1\" }\n"
      "[network]\nlink = { latency = \"0 ms\" }\n" +
      network + "\n[task]\nmodel = \"softmax\"\nrounds = 10\n" + events;
  return simulated(scratch, text);
}

double seconds(const std::string& network, const std::string& events = "") {
  return played(network, events).at("runs")[0].at("virtual_s").get<double>();
}

/// How long a frame's bytes take at 1 MB/s: a node's way out carries three of them a round.
double frame_s() {
  static const double found =
      seconds("hosts = [{ nodes = \"all\", up = \"1 MB/s\" }]") / (3 * kRounds);
  return found;
}

doctest::Approx about(double value) { return doctest::Approx(value).epsilon(1e-6); }

}  // namespace

TEST_CASE("a trunk carries all that leaves its nodes, and all that comes in") {
  // Two nodes inside and two outside: four frames a round each way.
  CHECK(seconds("trunk = [{ name = \"ocean\", nodes = \"east\", link = { bandwidth = \"1 MB/s\" } "
                "}]") == about(kRounds * 4 * frame_s()));
  CHECK(seconds("trunk = [{ name = \"ocean\", nodes = \"east\", link = { bandwidth = \"1 MB/s\", "
                "latency = \"20 ms\" } }]") == about(kRounds * (4 * frame_s() + 0.02)));
  // A site of one node: three frames each way.
  CHECK(
      seconds("trunk = [{ name = \"site\", nodes = \"3\", link = { bandwidth = \"1 MB/s\" } }]") ==
      about(kRounds * 3 * frame_s()));
}

TEST_CASE("messages cross every trunk between two nodes") {
  const auto two = [](const std::string& site, const std::string& ocean) {
    return seconds("trunk = [{ name = \"site\", nodes = \"3\", link = { " + site +
                   " } }, { name = \"ocean\", from = \"east\", to = \"2-3\", link = { " + ocean +
                   " } }]");
  };
  // Node 3's site is half as wide as the ocean that it lies behind.
  CHECK(two("bandwidth = \"0.5 MB/s\", latency = \"5 ms\"", "bandwidth = \"1 MB/s\"") ==
        about(kRounds * (3 * 2 * frame_s() + 0.005)));
  // Where the site is wider than the ocean, the ocean's four frames take longest.
  CHECK(two("bandwidth = \"8 MB/s\"", "bandwidth = \"1 MB/s\", latency = \"5 ms\"") ==
        about(kRounds * (4 * frame_s() + 0.005)));
  // Latencies add up.
  CHECK(seconds("trunk = [{ name = \"coast\", nodes = \"east\", link = { latency = \"10 ms\" } }, "
                "{ name = \"ocean\", from = \"east\", to = \"2-3\", link = { latency = \"5 ms\" } "
                "}]") == about(kRounds * 0.015));
}

TEST_CASE("a trunk between two groups is of both ways, or of one") {
  const std::string way =
      "name = \"ocean\", from = \"0\", to = \"1\", link = { bandwidth = \"1 MB/s\"";
  CHECK(seconds("trunk = [{ " + way + " } }]") == about(kRounds * frame_s()));
  const auto links = [&](const std::string& more) {
    const auto run = played("trunk = [{ " + way + " }" + more + " }]").at("runs")[0];
    std::string names;
    for (const auto& link : run.at("links")) {
      if (link.at("bytes").get<double>() > 0) {
        names += link.at("name").get<std::string>() + ";";
      }
    }
    return names;
  };
  CHECK(contains(links(""), "ocean there;"));
  CHECK(contains(links(""), "ocean back;"));
  CHECK(contains(links(", one-way = true"), "ocean there;"));
  CHECK_FALSE(contains(links(", one-way = true"), "ocean back;"));
}

TEST_CASE("an event changes a trunk, both ways") {
  const std::string trunk =
      "trunk = [{ name = \"ocean\", nodes = \"east\", link = { bandwidth = \"1 MB/s\" } }]";
  const double whole = kRounds * 4 * frame_s();
  const std::string half = "[[events]]\nat = \"" + std::to_string(whole / 2) +
                           " s\"\ntrunk = \"ocean\"\nlink = { bandwidth = \"0.5 MB/s\" }\n";
  CHECK(seconds(trunk, half) == doctest::Approx(1.5 * whole).epsilon(1e-4));
  CHECK(played(trunk, half).at("events")[0].at("text") == "ocean: 4 Mbit/s");
}

TEST_CASE("a trunk that makes no sense is refused with its place") {
  const Scratch scratch;
  const auto refusal = [&](const std::string& trunks, const std::string& events = "") {
    const auto ended =
        simulate(scratch, scenario(kNodes, kNetwork + ", trunk = [" + trunks + "]", events));
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, "s.toml:"));
    return ended.err;
  };
  const std::string good = "{ name = \"sea\", nodes = \"0-1\", link = \"wan\" }";
  CHECK(contains(refusal("{ nodes = \"0-1\", link = \"wan\" }"), "name"));
  CHECK(contains(refusal("{ name = \"the sea\", nodes = \"0\", link = \"wan\" }"), "one word"));
  CHECK(contains(refusal(good + ", " + good), "another trunk is called so"));
  CHECK(contains(refusal("{ name = \"sea\", nodes = \"0-1\" }"), "link"));
  CHECK(contains(refusal("{ name = \"sea\", link = \"wan\" }"), "nodes"));
  CHECK(contains(refusal("{ name = \"sea\", nodes = \"all\", link = \"wan\" }"), "other side"));
  CHECK(contains(refusal("{ name = \"sea\", nodes = \"0\", to = \"1\", link = \"wan\" }"),
                 "give one of the two"));
  CHECK(contains(refusal("{ name = \"sea\", from = \"0-1\", to = \"1-2\", link = \"wan\" }"),
                 "node 1 is in from, too"));
  CHECK(contains(refusal("{ name = \"sea\", nodes = \"0\", link = \"dsl\" }"), "own connection"));
  const auto event = [&](const std::string& text) {
    return refusal(good, "[[events]]\nat = \"1 s\"\n" + text);
  };
  CHECK(contains(event("trunk = \"see\"\nlink = \"wan\"\n"), "there is sea"));
  CHECK(contains(event("trunk = \"sea\"\n"), "link"));
  CHECK(
      contains(event("trunk = \"sea\"\nfrom = \"0\"\nto = \"1\"\nlink = \"wan\"\n"), "leave out"));
  CHECK(contains(event("trunk = \"sea\"\nlink = \"wan\"\n[[events]]\nat = \"1 s\"\ntrunk = "
                       "\"sea\"\nlink = \"wan\"\n"),
                 "which of them counts"));
}

}  // namespace sotto::test::trunk_test
