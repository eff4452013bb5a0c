// Processes of `sotto train --nodes MIN:MAX` that train one model, and are asked how they are.
#pragma once

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <sotto/observe/monitor.h>

#include "cli/program.h"
#include "support/free_port.h"
#include "support/scratch.h"

namespace sotto::test {

/// The processes of one run of one model, on loopback.
class EpochsRun {
 public:
  EpochsRun(std::string nodes, Arguments more)
      : nodes_(std::move(nodes)),
        more_(std::move(more)),
        seed_("127.0.0.1:" + std::to_string(free_port())),
        second_seed_("127.0.0.1:" + std::to_string(free_port())) {}

  void start(const std::string& name, const Arguments& own = {}) {
    monitors_[name] = free_port();
    Arguments words = {"train",      "--task",    "digits,train=600,test=200",
                       "--model",    "softmax",   "--nodes",
                       nodes_,       "--seeds",   seeds(),
                       "--name",     name,        "--json",
                       result(name), "--metrics", std::to_string(monitors_[name])};
    if (std::ranges::find(more_, "--lr") == more_.end()) {
      words.insert(words.end(), {"--lr", "0.5"});
    }
    words.insert(words.end(), more_.begin(), more_.end());
    words.insert(words.end(), own.begin(), own.end());
    processes_[name] = std::make_unique<Process>(command(words));
  }
  /// Starts the node that has the seed's address, and waits until it has.
  void begin(const std::string& name, const Arguments& own = {}) {
    Arguments words = {"--listen", seed_};
    words.insert(words.end(), own.begin(), own.end());
    start(name, words);
    await(name, [](const auto& status) { return status.at("address") != ""; });
  }
  /// All nodes are given a second seed; the words of the one that has it.
  Arguments with_second_seed() {
    second_ = true;
    return {"--listen", second_seed_};
  }
  /// All nodes are given the URL of a store in place of seeds.
  void meet_in(const std::string& store) { store_ = store; }
  Process& operator[](const std::string& name) { return *processes_.at(name); }
  std::string result(const std::string& name) const { return scratch_.path() / (name + ".json"); }
  std::string monitor(const std::string& name) const { return std::to_string(monitors_.at(name)); }
  std::string folder(const std::string& name) const { return scratch_.path() / (name + ".state"); }

  /// Asks until the node's status is as wanted; the test's time limit ends what never is.
  template <typename Wanted>
  nlohmann::json await(const std::string& name, const Wanted& wanted) const {
    while (true) {
      try {
        auto status =
            nlohmann::json::parse(sotto::ask_monitor({"127.0.0.1", monitors_.at(name)}, "/status"));
        if (wanted(status)) {
          return status;
        }
      } catch (const std::runtime_error&) {
        REQUIRE_MESSAGE(!over(name), processes_.at(name)->said());  // it does not answer yet
      } catch (const nlohmann::json::exception&) {
        // it knows of no epoch yet
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  /// Until the node's log has the word.
  void await_word(const std::string& name, const std::string& word) const {
    while (processes_.at(name)->said().find(word) == std::string::npos) {
      REQUIRE(!over(name));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  void await_members(const std::string& name, std::size_t members) const {
    await(name, [&](const auto& status) {
      return status.at("epoch").at("standing") == "member" &&
             status.at("epoch").at("members").size() == members;
    });
  }
  int await_more(const std::string& name, int steps) const {
    const int from = await(name, [](const auto&) { return true; }).at("round");
    return await(name, [&](const auto& status) { return status.at("round") >= from + steps; })
        .at("round");
  }
  /// Waits for the end of a node that ends well; what it wrote.
  nlohmann::json finish(const std::string& name) {
    const Ended ended = processes_.at(name)->wait();
    CAPTURE(name);
    CAPTURE(ended.err);
    REQUIRE(ended.status == 0);
    return nlohmann::json::parse(text_of_file(result(name)));
  }

 private:
  std::string seeds() const {
    return !store_.empty() ? store_ : seed_ + (second_ ? "," + second_seed_ : "");
  }
  /// Whether the process has ended.
  bool over(const std::string& name) const {
    std::ifstream file("/proc/" + std::to_string(processes_.at(name)->pid()) + "/stat");
    std::string line;
    std::getline(file, line);
    return line.find(") Z ") != std::string::npos;
  }

  const std::string nodes_;
  const Arguments more_;
  const std::string seed_;
  const std::string second_seed_;
  const Scratch scratch_;
  bool second_ = false;
  std::string store_;  ///< empty: seeds
  std::map<std::string, int> monitors_;
  std::map<std::string, std::unique_ptr<Process>> processes_;
};

}  // namespace sotto::test
