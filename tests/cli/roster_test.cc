// `sotto train --nodes MIN:MAX --seeds …` with processes that come, go and are killed.
#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <sotto/observe/monitor.h>

#include "cli/program.h"
#include "support/free_port.h"
#include "support/scratch.h"

namespace sotto::test::roster_test {

namespace {

/// The processes of one run, on loopback.
class RosterRun {
 public:
  explicit RosterRun(std::string nodes)
      : nodes_(std::move(nodes)), seed_("127.0.0.1:" + std::to_string(free_port())) {}

  void start(const std::string& name, const Arguments& more = {}) {
    monitors_[name] = free_port();
    Arguments words = {"train",
                       "--task",
                       "digits,train=600,test=200",
                       "--model",
                       "softmax",
                       "--nodes",
                       nodes_,
                       "--seeds",
                       seed_,
                       "--name",
                       name,
                       "--rounds",
                       "1200",
                       "--lr",
                       "0.5",
                       "--gradient-time",
                       "5 ms",
                       "--json",
                       result(name),
                       "--metrics",
                       std::to_string(monitors_[name])};
    words.insert(words.end(), more.begin(), more.end());
    processes_[name] = std::make_unique<Process>(command(words));
  }
  Process& operator[](const std::string& name) { return *processes_.at(name); }
  std::string result(const std::string& name) const { return scratch_.path() / (name + ".json"); }
  std::string ask(const std::string& name, const std::string& path) const {
    return sotto::ask_monitor({"127.0.0.1", monitors_.at(name)}, path);
  }
  /// Asks until the node's status is as wanted; the test's time limit ends what never is.
  template <typename Wanted>
  nlohmann::json await(const std::string& name, const Wanted& wanted) const {
    while (true) {
      try {
        auto status = nlohmann::json::parse(ask(name, "/status"));
        if (wanted(status)) {
          return status;
        }
      } catch (const std::runtime_error&) {
        // it does not answer yet
        REQUIRE_MESSAGE(!over(name), processes_.at(name)->said());
      } catch (const nlohmann::json::exception&) {
        // it knows of no roster yet
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  void await_round(const std::string& name, int round) const {
    await(name, [&](const auto& status) { return status.at("round") >= round; });
  }
  /// Waits for the end of a node that ends well; what it wrote.
  nlohmann::json finish(const std::string& name) {
    const Ended ended = processes_.at(name)->wait();
    CAPTURE(name);
    CAPTURE(ended.err);
    REQUIRE(ended.status == 0);
    log_[name] = ended.err;
    std::ifstream in(result(name));
    return nlohmann::json::parse(in);
  }
  const std::string& log(const std::string& name) const { return log_.at(name); }
  const std::string& seed() const { return seed_; }

 private:
  /// Whether the process has ended.
  bool over(const std::string& name) const {
    std::ifstream file("/proc/" + std::to_string(processes_.at(name)->pid()) + "/stat");
    std::string line;
    std::getline(file, line);
    return line.find(") Z ") != std::string::npos;
  }

  const std::string nodes_;
  const std::string seed_;
  const Scratch scratch_;
  std::map<std::string, int> monitors_;
  std::map<std::string, std::string> log_;
  std::map<std::string, std::unique_ptr<Process>> processes_;
};

}  // namespace

TEST_CASE("train by roster: nodes come, the seed is killed, one leaves, and the others finish") {
  RosterRun run("2:4");
  run.start("seed", {"--listen", run.seed()});
  // Before another one takes its address, as a seed's is free.
  run.await("seed", [](const auto& status) { return status.at("roster").at("up") == 1; });
  run.start("a");
  run.start("b");
  run.await_round("a", 60);
  run.start("late");
  const auto joined = run.await("late", [](const auto& status) { return status.at("round") > 0; });
  CHECK(joined.at("round") >= 50);
  const auto full =
      run.await("late", [](const auto& status) { return status.at("roster").at("up") == 4; });
  CHECK(full.at("roster").at("nodes").size() == 4);
  CHECK(run.ask("late", "/metrics").find("sotto_nodes_up 4") != std::string::npos);
  run["seed"].send(SIGKILL);
  run["b"].send(SIGTERM);
  const auto left = run.finish("b");
  CHECK(left.at("stopped") == true);
  CHECK(left.at("round") < 1200);
  for (const std::string name : {"a", "late"}) {
    const auto result = run.finish(name);
    CHECK(result.at("stopped") == false);
    CHECK(result.at("round") == 1200);
    CHECK(result.at("final").at("accuracy") > 0.8);
    CHECK(run.log(name).find("node-left b") != std::string::npos);
  }
  // Not every node has a channel to every other one.
  const std::string logs = run.log("a") + run.log("b") + run.log("late");
  CHECK_MESSAGE(logs.find("peer-down seed") != std::string::npos, logs);
}

TEST_CASE("train by roster: a node waits for MIN, and ends when it is told to") {
  RosterRun run("3:4");
  run.start("one");
  run.start("two");
  const auto waits =
      run.await("two", [](const auto& status) { return status.at("roster").at("up") == 2; });
  CHECK(waits.at("round") == 0);
  CHECK(waits.at("phase") == "joining");
  for (const std::string name : {"one", "two"}) {
    run[name].send(SIGTERM);
    CHECK(run[name].wait().status == 0);
  }
}

TEST_CASE("train by roster: settings that such a run does not have are refused, with the reason") {
  const auto refused = [](const Arguments& more) {
    Arguments words = {"train", "--nodes", "2:4"};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = run(words);
    CHECK(ended.status == 2);
    return ended.err;
  };
  CHECK(refused({}).find("--seeds") != std::string::npos);
  const Arguments seeds = {"--seeds", "127.0.0.1:9"};
  const auto with_seeds = [&](Arguments more) {
    more.insert(more.end(), seeds.begin(), seeds.end());
    return refused(more);
  };
  CHECK(with_seeds({"--topology", "torus:2x2"}).find("--topology") != std::string::npos);
  CHECK(with_seeds({"--algorithm", "dcd"}).find("--algorithm") != std::string::npos);
  CHECK(with_seeds({"--checkpoint", "saved"}).find("--checkpoint") != std::string::npos);
  CHECK(with_seeds({"--privacy-delta", "1e-4"}).find("--privacy-delta") != std::string::npos);
  CHECK(with_seeds({"--privacy-seed", "3"}).find("--privacy-seed") != std::string::npos);
  const Ended fixed = run({"train", "--nodes", "2", "--leave-within", "9"});
  CHECK(fixed.status == 2);
  CHECK(fixed.err.find("--leave-within") != std::string::npos);
  CHECK(refused({"--seeds", "nowhere"}).find("--seeds") != std::string::npos);
  CHECK(with_seeds({"--listen", "0.0.0.0:0"}).find("--listen") != std::string::npos);
  // An option that says what is so by default, or what only a run of fixed nodes has.
  CHECK(with_seeds({"--topology", "ring"}).find("--topology") != std::string::npos);
  CHECK(with_seeds({"--groups", "groups.txt"}).find("--groups") != std::string::npos);
  CHECK(with_seeds({"--progress", "plain"}).find("--progress") != std::string::npos);
  CHECK(with_seeds({"--trace", "trace.json"}).find("--trace") != std::string::npos);
  for (const std::string range : {"4:2", "0:2", "2:x", ":", "1:2:3"}) {
    CAPTURE(range);
    const Ended ended = run({"train", "--nodes", range, "--seeds", "127.0.0.1:9"});
    CHECK(ended.status == 2);
    CHECK(ended.err.find("--nodes: '" + range + "' is refused: MIN:MAX") != std::string::npos);
  }
}

}  // namespace sotto::test::roster_test
