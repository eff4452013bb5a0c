// Simulations and plans through sotto.h.
#include <string>
#include <thread>

#include "bindings/c_node.h"

namespace sotto::test::c_study_test {

namespace {

constexpr const char* kScenario = R"(
sotto-scenario = 1
title = "Four nodes"
run = ["allreduce", "dcd quant:8 ring"]

[nodes]
count = 4
gradient = "5 ms"

[network]
link = { bandwidth = "5 Mbit/s", latency = "10 ms" }

[task]
task = "digits"
rounds = 10
eval-every = 1
)";

using Study = sotto_status (*)(const char* const*, sotto_interrupt*, char**);

/// The text that a study gives for the scenario; empty where it is refused.
std::string studied(Study study, Words words, sotto_interrupt* interrupt = nullptr) {
  words.insert(words.begin(), {"scenario-text", kScenario});
  char* text = nullptr;
  const auto settings = as_settings(words);
  const sotto_status status = study(settings.data(), interrupt, &text);
  CHECK((status == SOTTO_OK) == (text != nullptr));
  std::string copy = text == nullptr ? "" : text;
  sotto_free(text);
  return copy;
}

bool refused(Study study, const Words& words, const std::string& why) {
  return studied(study, words).empty() && says(why);
}

}  // namespace

TEST_CASE("a simulation gives its runs as JSON, the same ones for the same settings") {
  const std::string once = studied(sotto_simulate, {"seed", "7", "threads", "1"});
  CHECK(once == studied(sotto_simulate, {"seed", "7", "threads", "2"}));
  CHECK(once != studied(sotto_simulate, {"seed", "8"}));
  const auto json = nlohmann::json::parse(once);
  CHECK(json.at("sotto") == sotto_version());
  CHECK(json.at("scenario") == "Four nodes");
  CHECK(json.at("failed").empty());
  REQUIRE(json.at("runs").size() == 2);
  CHECK(json.at("runs").at(1).at("name") == "dcd quant:8 ring");
  CHECK(json.at("runs").at(1).at("rounds") == 10);
  CHECK_FALSE(json.at("runs").at(0).contains("at_equal"));
  const auto level = nlohmann::json::parse(studied(sotto_simulate, {"equal", "bytes"}));
  CHECK(level.at("runs").at(0).at("at_equal").at("bytes_per_node") > 0.0);
}

TEST_CASE("a plan considers what its lists name") {
  const auto json = nlohmann::json::parse(
      studied(sotto_plan, {"codec", "none", "topology", "ring", "compressor", "sign", "compressor",
                           "quant:8", "budget", "1", "seeds", "1", "rank_by", "mean"}));
  CHECK(json.at("rank_by") == "mean");
  CHECK(json.at("winner").is_string());
  std::string names;
  for (const auto& candidate : json.at("candidates")) {
    names += candidate.at("name").get<std::string>() + "; ";
  }
  CAPTURE(names);
  CHECK(names.find(" sign ring") != std::string::npos);
  CHECK(names.find(" quant:8 ring") != std::string::npos);
  CHECK(names.find("quant:4") == std::string::npos);
}

TEST_CASE("what a study refuses has the setting's name") {
  CHECK(refused(sotto_simulate, {"equal", "rounds"}, "equal: 'rounds' is refused"));
  CHECK(refused(sotto_simulate, {"seed", "x"}, "seed: 'x' is refused"));
  CHECK(refused(sotto_simulate, {"seed"}, "seed: its value is missing"));
  CHECK(refused(sotto_simulate, {"seed", "1", "seed", "2"}, "seed: it is given twice"));
  CHECK(refused(sotto_simulate, {"thread", "1"}, "thread: there is no such setting; did you mean"));
  CHECK(refused(sotto_simulate, {"scenario", "a.toml"}, "scenario: it has a text beside it"));
  CHECK(refused(sotto_plan, {"rank_by", "best"}, "rank_by: 'best' is refused"));
  CHECK(refused(sotto_plan, {"algorithm", "dcc"}, "algorithm: 'dcc' is refused"));
  CHECK(refused(sotto_plan, {"topology", "ring", "topology", "ring"}, "topology: value 2, 'ring'"));
  char* text = nullptr;
  CHECK(sotto_simulate(nullptr, nullptr, &text) == SOTTO_REFUSED);
  CHECK(says("scenario: it is missing"));
  const Words nowhere_words = {"scenario", "/nowhere/a.toml"};
  const auto nowhere = as_settings(nowhere_words);
  CHECK(sotto_plan(nowhere.data(), nullptr, &text) == SOTTO_REFUSED);
  CHECK(says("scenario: '/nowhere/a.toml' is refused"));
  CHECK(text == nullptr);
  CHECK(sotto_plan(nowhere.data(), nullptr, nullptr) == SOTTO_REFUSED);
  CHECK(says("json: a null pointer"));
}

TEST_CASE("what refuses a scenario's run names the keys of the scenario") {
  std::string text(kScenario);
  text.replace(text.find("dcd quant:8"), 11, "dcd topk:0.1");
  const Words words = {"scenario-text", text};
  const auto settings = as_settings(words);
  char* json = nullptr;
  for (const Study study : {sotto_simulate, sotto_plan}) {
    CHECK(study(settings.data(), nullptr, &json) == SOTTO_REFUSED);
    CHECK(says("run: 'dcd topk:0.1 ring': compressor: 'topk:0.1' is refused"));
    CHECK(says("or allow it explicitly with task.allow-contract-violation = true"));
  }
}

TEST_CASE("an interrupt ends a study, whichever comes first") {
  std::string endless(kScenario);
  endless.replace(endless.find("rounds = 10"), 11, "rounds = 1000000000");
  const Words words = {"scenario-text", endless};
  const auto settings = as_settings(words);
  for (const Study study : {sotto_simulate, sotto_plan}) {
    sotto_interrupt* interrupt = nullptr;
    REQUIRE(sotto_interrupt_create(&interrupt) == SOTTO_OK);
    std::thread raises([&] { CHECK(sotto_interrupt_raise(interrupt) == SOTTO_OK); });
    char* text = nullptr;
    CHECK(study(settings.data(), interrupt, &text) == SOTTO_STOPPED);
    CHECK_FALSE(std::string(sotto_last_error()).empty());
    raises.join();
    CHECK(study(settings.data(), interrupt, &text) == SOTTO_STOPPED);
    CHECK(text == nullptr);
    sotto_interrupt_destroy(interrupt);
  }
}

}  // namespace sotto::test::c_study_test
