// `sotto train --nodes MIN:MAX --algorithm allreduce` with processes that come, go and are killed.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <sotto/base/philox.h>
#include <sotto/sites/nodes/roster_settings.h>

#include "cli/epochs_run.h"
#include "cli/program.h"
#include "support/seed.h"

namespace sotto::test::epochs_run_test {

namespace {

/// Steps of a run that goes on while the test acts.
const std::string kLong = "2500";

/// Four nodes; the eldest and a random one are killed, a new one joins, and one leaves. The run has
/// `rounds` steps.
void churn(const Arguments& algorithm, std::uint64_t seed, int rounds = 2500) {
  CAPTURE(seed);
  sotto::RandomStream draw({.seed = seed, .purpose = sotto::Purpose::faults});
  Arguments words = algorithm;
  for (const std::string word : {"--gradient-time", "12 ms", "--rounds", "2500"}) {
    words.push_back(word);
  }
  EpochsRun run("2:6", words);
  run.begin("a");
  for (const std::string name : {"b", "c", "d", "e"}) {
    run.start(name);
  }
  run.await_members("e", 5);
  run["a"].send(SIGKILL);  // the eldest, and the only seed
  std::vector<std::string> living = {"b", "c", "d", "e"};
  run.await_members("b", 4);
  const auto victim = living.begin() + static_cast<std::ptrdiff_t>(draw.below(living.size()));
  run[*victim].send(SIGKILL);
  living.erase(victim);
  CAPTURE(living[0]);
  run.await_members(living[0], 3);
  run.start("late");
  run.await_members("late", 4);
  run.await_more("late", 5);
  run[living[2]].send(SIGTERM);
  const auto left = run.finish(living[2]);
  CHECK(left.at("stopped") == true);
  const std::string digest = run.finish("late").at("parameters_sha256");
  for (const std::string& name : {living[0], living[1]}) {
    const auto result = run.finish(name);
    CHECK(result.at("round") == rounds);
    CHECK(result.at("stopped") == false);
    CHECK(result.at("parameters_sha256") == digest);
    CHECK(result.at("final").at("accuracy") > 0.8);
  }
}

}  // namespace

TEST_CASE("train one model: nodes are killed, come and leave, and all that live have one model") {
  churn({"--algorithm", "allreduce"}, drawn_seed());
}

TEST_CASE("train one model: the same in few bits") {
  churn({"--algorithm", "qmean", "--compressor", "quant:8", "--step-rule", "adam", "--lr", "0.01"},
        drawn_seed());
}

TEST_CASE("train one model: the same with local steps and an outer momentum") {
  churn({"--algorithm", "allreduce", "--communication-interval", "5", "--outer-lr", "0.7",
         "--outer-momentum", "0.5", "--outer-nesterov"},
        drawn_seed(), 500);
}

TEST_CASE("train one model: below MIN nobody steps, and all go on when one more is there") {
  EpochsRun run("2:4", {"--algorithm", "allreduce", "--gradient-time", "3 ms", "--rounds", "2000"});
  run.begin("a");
  run.start("b");
  run.await_more("b", 5);
  run["b"].send(SIGKILL);
  run.await_members("a", 1);
  const auto waits =
      run.await("a", [](const auto& status) { return status.at("phase") == "waiting"; });
  const int before = waits.at("round");
  CHECK(run.await("a", [](const auto&) { return true; }).at("round") == before);
  run.start("c");
  run.await_members("c", 2);
  CHECK(run.finish("a").at("round") == 2000);
  CHECK(run.finish("c").at("round") == 2000);
}

TEST_CASE("train one model: a node alone ends within seconds when it is told to") {
  EpochsRun run("3:4", {"--algorithm", "allreduce", "--rounds", kLong});
  run.begin("a");
  run["a"].send(SIGTERM);
  CHECK(run["a"].wait().status == 0);
}

TEST_CASE("train one model: a run that stands still says so, and a second signal ends a node") {
  EpochsRun run("2",
                {"--algorithm", "allreduce", "--rounds", "1000000", "--gradient-time", "3 ms"});
  run.begin("a");
  run.start("b", {"--leave-within", "3600"});
  run.await_more("b", 5);
  const std::string healthy = sotto::test::run({"status", run.monitor("b")}).out;
  CHECK_MESSAGE(!contains(healthy, "WAITS"), healthy);
  CHECK_MESSAGE(contains(healthy, "whose members are a, b"), healthy);
  run["a"].send(SIGKILL);  // the elder of two: the younger can neither go on nor end the epoch
  const auto status = run.await("b", [](const auto& seen) {
    const auto& epoch = seen.at("epoch");
    return epoch.at("waits_for") == "quorum" && epoch.at("waits_s") > 3;
  });
  CHECK(status.at("epoch").at("lost") == nlohmann::json::array({"a"}));
  const std::string words = sotto::test::run({"status", run.monitor("b")}).out;
  CHECK_MESSAGE(contains(words, "IT WAITS"), words);
  CHECK_MESSAGE(contains(words, "quorum; lost: a"), words);
  CHECK_MESSAGE(contains(words, "whose members are a, b"), words);
  run.await_word("b", "run-waits");
  run["b"].send(SIGTERM);
  run.await_word("b", "stopping");
  run["b"].send(SIGTERM);
  const Ended ended = run["b"].wait();
  CHECK(ended.status == 0);
  CHECK_MESSAGE(contains(ended.err, "undelivered"), ended.err);
}

TEST_CASE("train one model: the first node that comes back with its votes begins no second run") {
  EpochsRun run("1:4", {"--algorithm", "allreduce", "--gradient-time", "3 ms", "--rounds", kLong});
  run.begin("a", {"--state", run.folder("a")});
  run.start("b");
  run.await_members("b", 2);
  const auto first = run.await("b", [](const auto&) { return true; });
  run["a"].send(SIGKILL);  // the elder of two: the younger may not go on alone
  CHECK(run["a"].wait().status != 0);
  run.begin("a", {"--state", run.folder("a")});
  const auto again =
      run.await("a", [](const auto& status) { return status.at("epoch").at("run") != ""; });
  CHECK(again.at("epoch").at("run") == first.at("epoch").at("run"));
  CHECK(again.at("epoch").at("standing") == "joining");
  for (const std::string name : {"a", "b"}) {
    run[name].send(SIGTERM);
    CHECK(run[name].wait().status == 0);
  }
}

TEST_CASE("train one model: all nodes are killed, and go on from their folders when they return") {
  const std::uint64_t seed = drawn_seed();
  CAPTURE(seed);
  sotto::RandomStream draw({.seed = seed, .purpose = sotto::Purpose::faults});
  EpochsRun run(
      "2:3", {"--algorithm", "allreduce", "--gradient-time", "4 ms", "--step-rule", "adam", "--lr",
              "0.01", "--rounds", "700", "--save-every", "10", "--begin-again-after", "2"});
  std::vector<std::string> names = {"a", "b", "c"};
  const auto begin = [&] {
    for (const std::string& name : names) {
      const Arguments own = {"--state", run.folder(name)};
      name == "a" ? run.begin(name, own) : run.start(name, own);
    }
    run.await_members("c", 3);
  };
  begin();
  const int before = run.await_more("a", 100);
  std::ranges::shuffle(names, draw);
  for (const std::string& name : names) {
    run[name].send(SIGKILL);
  }
  for (const std::string& name : names) {
    CHECK(run[name].wait().status != 0);
  }
  int saved = 0;
  for (const std::string& name : names) {
    for (const std::string file : {"/state.a", "/state.b"}) {
      const auto state =
          sotto::test::run({"checkpoint", "inspect", run.folder(name) + file, "--json", "-"})
              .json();
      saved = std::max(saved, state.at("round").get<int>());
    }
  }
  CHECK(saved > before / 2);
  std::ranges::sort(names);
  begin();
  CHECK(run.await("a", [](const auto&) { return true; }).at("epoch").at("base") >= saved);
  const std::string digest = run.finish("a").at("parameters_sha256");
  for (const std::string name : {"b", "c"}) {
    const auto result = run.finish(name);
    CHECK(result.at("round") == 700);
    CHECK(result.at("parameters_sha256") == digest);
    CHECK(result.at("final").at("accuracy") > 0.8);
  }
}

TEST_CASE("train one model: two of three are killed, and two new ones go on with the survivor") {
  EpochsRun run("2:3", {"--algorithm", "allreduce", "--gradient-time", "4 ms", "--rounds", "500",
                        "--begin-again-after", "1", "--timeout", "2"});
  const Arguments survivor = run.with_second_seed();
  run.begin("a");
  run.start("c", survivor);
  // A node without an address of its own takes a seed's that is free.
  run.await("c", [](const auto& status) { return status.at("address") != ""; });
  run.start("b");
  run.await_members("c", 3);
  run.await_more("c", 20);
  for (const std::string name : {"a", "b"}) {
    run[name].send(SIGKILL);
  }
  const int before =
      run.await("c",
                [](const auto& status) { return status.at("epoch").at("waits_for") == "quorum"; })
          .at("round");
  run.await_word("c", "another run begins from the newest model");
  run.start("d");
  run.start("e");
  run.await_members("e", 3);
  run.await_word("c", "run-given-up");
  CHECK(run.await_more("c", 1) > before);
  const auto base = run.await("e", [](const auto&) { return true; }).at("epoch").at("base");
  CHECK(base >= before);
  const std::string digest = run.finish("c").at("parameters_sha256");
  for (const std::string name : {"d", "e"}) {
    const auto result = run.finish(name);
    CHECK(result.at("round") == 500);
    CHECK(result.at("parameters_sha256") == digest);
  }
}

TEST_CASE("train one model: settings that such a run does not have are refused, with the reason") {
  const auto refused = [](const Arguments& more) {
    Arguments words = {"train", "--nodes", "2:4", "--seeds", "127.0.0.1:9"};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = run(words);
    CHECK(ended.status == 2);
    return ended.err;
  };
  const auto names = [&](const Arguments& more, const std::string& what) {
    CHECK_MESSAGE(refused(more).find(what) != std::string::npos, what);
  };
  names({"--algorithm", "allreduce", "--compressor", "quant:8"}, "--compressor");
  names({"--algorithm", "qmean", "--compressor", "none"}, "--compressor");
  names({"--algorithm", "qmean:decay=0.9"}, "--algorithm");
  names({"--algorithm", "allreduce", "--communication-interval", "4", "--fragments", "2"},
        "--fragments");
  names({"--algorithm", "pushsum", "--state", "folder"}, "--state");
  names({"--algorithm", "pushsum", "--begin-again-after", "60"}, "--begin-again-after");
  names({"--algorithm", "allreduce", "--save-every", "60"}, "--save-every");
  names({"--algorithm", "powersgd"}, "where nodes come and go");
  for (const std::string nodes : {"2:65", "65", "1:4097"}) {  // one rule, in one text
    const Ended ended =
        run({"train", "--nodes", nodes, "--seeds", "127.0.0.1:9", "--algorithm", "allreduce"});
    CHECK(ended.status == 2);
    CHECK_MESSAGE(ended.err.find(sotto::node_range_rule()) != std::string::npos, ended.err);
  }
  const Ended fixed = run({"train", "--nodes", "2", "--state", "folder"});
  CHECK(fixed.status == 2);
  CHECK(fixed.err.find("--state") != std::string::npos);
}

}  // namespace sotto::test::epochs_run_test
