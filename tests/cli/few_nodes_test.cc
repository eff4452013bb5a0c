// One node, two nodes, and nodes without neighbours: every command and mode either works or is
// refused with a message, for each algorithm that the program lists.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cli/scenario_text.h"

namespace sotto::test::few_nodes_test {

namespace {

std::vector<std::string> listed_algorithms() {
  std::vector<std::string> names;
  const auto listed = run({"list", "--json", "-"}).json();
  for (const auto& algorithm : listed.at("algorithms")) {
    names.push_back(algorithm.at("name").get<std::string>());
  }
  REQUIRE(names.size() > 10);
  return names;
}

/// Success, or a refusal in words.
void check_ended_well(const Ended& ended) {
  CAPTURE(ended.err);
  CHECK((ended.status == 0 || (ended.status == 2 && ended.err.starts_with("sotto: "))));
  CHECK(ended.err.find("invariant") == std::string::npos);
}

const Arguments kSmallTask = {"--task",   "digits,train=64,test=32",
                              "--model",  "softmax",
                              "--batch",  "8",
                              "--rounds", "3",
                              "--quiet",  "--timeout",
                              "20"};

Arguments with_task(Arguments arguments) {
  arguments.insert(arguments.end(), kSmallTask.begin(), kSmallTask.end());
  return arguments;
}

/// Whether an algorithm must be told when to freeze its variance.
bool freezes(const std::string& algorithm) {
  return algorithm == "apmsqueeze" || algorithm.starts_with("onebit-");
}

/// A run in a scenario's words.
std::string words(const std::string& algorithm, const std::string& graph) {
  return algorithm + " " + graph + (freezes(algorithm) ? " freeze-step=2" : "");
}

/// `sotto train` on threads, with few nodes.
Arguments train(const std::string& algorithm, int nodes, const Arguments& more) {
  Arguments all = {"train", "--algorithm", algorithm, "--nodes", std::to_string(nodes)};
  all.insert(all.end(), kSmallTask.begin(), kSmallTask.end());
  if (freezes(algorithm)) {
    all.insert(all.end(), {"--freeze-step", "2"});
  }
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string small_scenario(const std::string& run_words, int nodes, bool timing_only) {
  return "sotto-scenario = 1\nrun = [\"" + run_words +
         "\"]\ntiming-only = " + (timing_only ? "true" : "false") +
         "\nnodes = { count = " + std::to_string(nodes) +
         ", gradient = \"2 ms\" }\nnetwork = { link = \"wan\" }\n"
         "task = { task = \"digits,train=64,test=32\", model = \"softmax\", rounds = 3, "
         "batch = 8 }\n";
}

}  // namespace

TEST_CASE("one and two nodes are simulated, fully and for time alone, with every algorithm") {
  const Scratch scratch;
  for (const std::string& algorithm : listed_algorithms()) {
    for (const std::string graph : {"ring", "complete"}) {
      for (const int nodes : {1, 2}) {
        for (const bool timing_only : {true, false}) {
          CAPTURE(algorithm);
          CAPTURE(graph);
          CAPTURE(nodes);
          CAPTURE(timing_only);
          check_ended_well(simulate(
              scratch, small_scenario(words(algorithm, graph), nodes, timing_only), {"--quiet"}));
        }
      }
    }
  }
}

TEST_CASE("one and two nodes train with every algorithm, whatever the mode") {
  const std::vector<Arguments> modes = {
      {"--transport", "inproc"},
      {"--transport", "inproc", "--overlap", "off"},
      {"--transport", "inproc", "--buckets", "2"},
      {"--transport", "inproc", "--communication-interval", "2"},
      {"--transport", "inproc", "--delayed-gradient"},
      {"--transport", "gloo"},
      {"--transport", "zmq"},
  };
  for (const std::string& algorithm : listed_algorithms()) {
    for (const int nodes : {1, 2}) {
      for (const Arguments& mode : modes) {
        CAPTURE(algorithm);
        CAPTURE(nodes);
        CAPTURE(mode[1]);
        CAPTURE(mode.back());
        check_ended_well(run(train(algorithm, nodes, mode)));
      }
    }
  }
}

TEST_CASE("a graph with a node that has no neighbour ends well in every command") {
  const Scratch scratch;
  for (const std::string graph : {"edges:0-1", "edges:1-2"}) {
    CAPTURE(graph);
    for (const std::string& algorithm : listed_algorithms()) {
      CAPTURE(algorithm);
      check_ended_well(run(train(algorithm, 3, {"--topology", graph, "--transport", "inproc"})));
      for (const bool timing_only : {true, false}) {
        check_ended_well(simulate(scratch, small_scenario(words(algorithm, graph), 3, timing_only),
                                  {"--quiet"}));
      }
    }
    check_ended_well(run({"topology", graph, "--nodes", "3", "--json", "-"}));
  }
}

TEST_CASE("plan and compare take one node and two") {
  const Scratch scratch;
  for (const int nodes : {1, 2}) {
    CAPTURE(nodes);
    const auto file = scratch.write("s.toml", small_scenario("dpsgd ring", nodes, false)).string();
    check_ended_well(run({"plan", file, "--budget", "2", "--seeds", "1", "--codec", "none"}));
    check_ended_well(run(with_task({"compare", "--nodes", std::to_string(nodes), "--run",
                                    "dpsgd ring", "--run", "allreduce"})));
  }
}

TEST_CASE("the bench of an exchange refuses a single node") {
  const auto lonely = run({"bench", "exchange", "--nodes", "1", "--transport", "inproc"});
  CHECK(lonely.status == 2);
  CHECK(lonely.err.starts_with("sotto: "));
}

}  // namespace sotto::test::few_nodes_test
