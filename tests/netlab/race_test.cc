// The contenders, what they print, and the results of repetitions; and a short race on loopback.
#include <atomic>
#include <cmath>
#include <filesystem>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/netlab/commands/race_plot.h"
#include "bench/netlab/contest/contender_result.h"
#include "bench/netlab/contest/contender_words.h"
#include "support/skip.h"

#include <sotto/comm/transport.h>
#include <sotto/study/train/run_spec.h>
#include <sotto/trainers/launch/private_directory.h>

namespace sotto::test::race_test {

using namespace sotto::netlab;

namespace {

ContenderResult result(Baseline baseline, std::vector<std::optional<double>> seconds) {
  Contender contender = step_contenders().front();
  contender.baseline = baseline;
  return {
      .contender = contender, .seconds = std::move(seconds), .bytes = {}, .wire = {}, .why = {}};
}

const Contender& named(std::span<const Contender> all, std::string_view name) {
  for (const Contender& one : all) {
    if (one.name == name) {
      return one;
    }
  }
  FAIL("no contender is called " << name);
  return all.front();
}

JobRequest brief() { return {.hidden = 4, .rounds = 3, .training = std::nullopt}; }

}  // namespace

TEST_CASE("every contender has a name of its own, words that sotto takes, and something to beat") {
  for (const auto table : {step_contenders(), training_contenders()}) {
    std::set<std::string_view> names;
    bool full = false;
    bool hook = false;
    for (const Contender& one : table) {
      CAPTURE(one.name);
      CHECK(names.insert(one.name).second);
      CHECK(one.share > 0);
      const bool own = one.runner == Runner::sotto || one.runner == Runner::sotto_peer;
      CHECK(own == !one.transport.empty());
      if (own) {
        CHECK_NOTHROW(study::joined_settings(study::parse_run(one.words), {}));
      }
      full = full || one.baseline == Baseline::gloo;
      hook = hook || one.baseline == Baseline::ddp_hook;
    }
    CHECK(full);
    CHECK(hook);
  }
}

TEST_CASE("contenders are chosen by name, or by a part of it that is nobody's name") {
  const auto chosen = [](const std::vector<std::string>& names) {
    return choose(step_contenders(), names).size();
  };
  CHECK(chosen({}) == step_contenders().size());
  CHECK(chosen({"gloo ring"}) == 1);
  CHECK(chosen({"ddp"}) == 1);
  CHECK(chosen({"powersgd"}) == 2);
  CHECK(chosen({"powersgd", "ddp powersgd:1"}) == 2);
  CHECK_THROWS_WITH(choose(step_contenders(), {"nccl"}),
                    doctest::Contains("--only: 'nccl' is refused"));
}

TEST_CASE("who needs less time takes more rounds, within bounds") {
  Contender one = step_contenders().front();
  one.share = 1;
  CHECK(rounds_of(one, 10) == 10);
  one.share = 0.05;
  CHECK(rounds_of(one, 10) == 200);
  one.share = 0.001;
  CHECK(rounds_of(one, 10) == 200);
  one.share = 5;
  CHECK(rounds_of(one, 2) == 1);
}

TEST_CASE("a model is as long as was asked for, or a hidden unit longer") {
  for (const std::size_t elements : {std::size_t{1}, std::size_t{805}, std::size_t{806},
                                     std::size_t{1'000'000}, std::size_t{10'000'000}}) {
    CAPTURE(elements);
    const std::size_t found = elements_of(hidden_for(elements));
    CHECK(found >= elements);
    CHECK((found < elements + 795 || found == 805));
  }
  CHECK(elements_of(64) == 50'890);
}

TEST_CASE("what peers print is read from the last line, and what is no result is told") {
  const auto timed = timed_run_from("warm\n{\"round_s\": 0.25, \"bytes_per_round\": 700}\n");
  REQUIRE(timed.ok());
  CHECK(timed->round_s == 0.25);
  CHECK(timed->bytes == 700);
  const auto without = timed_run_from("{\"round_s\":1,\"bytes_per_round\":null}");
  REQUIRE(without.ok());
  CHECK_FALSE(without->bytes.has_value());
  for (const char* text : {"", "warm\n", "[1]", "{\"round_s\": 0}", "{\"round_s\": -1}",
                           "{\"round_s\": \"1\"}", "{\"rounds\": 3", "{}"}) {
    CAPTURE(text);
    const auto wrong = timed_run_from(text);
    REQUIRE_FALSE(wrong.ok());
    CHECK(wrong.status().message().find("it printed no result") != std::string::npos);
  }
}

TEST_CASE("a target is reached at the first evaluation that is as good, or never") {
  const std::string output =
      "{\"history\": [{\"round\": 10, \"time_s\": 1.0, \"accuracy\": 0.5},"
      "{\"round\": 20, \"time_s\": 2.5, \"accuracy\": 0.93},"
      "{\"round\": 30, \"time_s\": 3.0, \"accuracy\": 0.91}]}";
  const auto found = time_to_accuracy_from(output, 0.9);
  REQUIRE(found.ok());
  CHECK(found->seconds == 2.5);
  CHECK(found->round == 20);
  CHECK(found->best == 0.93);
  CHECK(found->round_s == doctest::Approx(0.1));
  const auto never = time_to_accuracy_from(output, 0.94);
  REQUIRE(never.ok());
  CHECK_FALSE(never->seconds.has_value());
  CHECK_FALSE(time_to_accuracy_from("{\"history\": []}", 0.9).ok());
  CHECK_FALSE(time_to_accuracy_from("{\"history\": [{\"round\": 1}]}", 0.9).ok());
}

TEST_CASE("a ratio is to the fastest full-precision all-reduce of the same repeat") {
  const std::vector<ContenderResult> all = {
      result(Baseline::gloo, {2.0, 8.0, std::nullopt}), result(Baseline::gloo, {4.0, 6.0, 3.0}),
      result(Baseline::others, {1.0, 9.0, 9.0}), result(Baseline::none, {0.5, std::nullopt, 1.0})};
  CHECK(speedups(all[3], all, {Baseline::gloo}) == std::vector<double>{4, 3});
  CHECK(speedups(all[3], all, {Baseline::gloo, Baseline::others}) == std::vector<double>{2, 3});
  CHECK(speedups(all[3], all, {Baseline::own}).empty());
  CHECK(best_of(all, {Baseline::gloo}) == &all[1]);
  CHECK(best_of(all, {Baseline::own}) == nullptr);
  CHECK(all[0].spread().median == 5);
  CHECK(all[0].spread().high == 8);
  CHECK(std::isnan(result(Baseline::none, {}).spread().median));
}

TEST_CASE("a race has failed when every contender has, and says why with the first one's words") {
  std::vector<ContenderResult> all = {result(Baseline::gloo, {}), result(Baseline::none, {2.0})};
  all[0].participation = Participation::skipped;
  all[0].why = "why";
  CHECK(failure_of_all(all).empty());
  all[1].participation = Participation::failed;
  all[1].why = "why not";
  const std::string first(all[0].contender.name);
  CHECK(failure_of_all(all) == "every contender has failed; " + first + ": why");
}

TEST_CASE("bars are drawn for what there is, and none for what failed") {
  const BarPlot plot = {.title = "a < b",
                        .series = {"1000 elements"},
                        .groups = {{"fast", {{.median = 8, .low = 7, .high = 9}}},
                                   {"failed", {bench::spread_of({})}}}};
  const std::string svg = draw_bars(plot);
  CHECK(svg.find("a &lt; b") != std::string::npos);
  CHECK(svg.find(">8</text>") != std::string::npos);
  CHECK(svg.find("nan") == std::string::npos);
}

TEST_CASE("a contender of each kind finishes a short race on loopback") {
  const PrivateDirectory folder;
  const Testbed testbed({.hosts = 2, .loopback = true});
  const Runners runners = {.sotto = SOTTO_PROGRAM};
  const std::atomic<bool> stop{false};
  std::string missing;
  const char* ours =
      transport_info("gloo").available ? "sotto choco sign gloo" : "sotto choco sign zmq";
  for (const char* name :
       {ours, "gloo ring", "gloo halving-doubling unfused", "gloo sharded",
        "gloo hierarchical fp16", "mpi allreduce", "mpi neighbours 8 bit", "ddp powersgd:1"}) {
    const Contender& contender = named(step_contenders(), name);
    CAPTURE(name);
    if (const auto why = runners.missing(contender.runner)) {
      missing += fmt::format("{}{}: {}", missing.empty() ? "" : "; ", name, *why);
      continue;
    }
    const std::string where = folder.path() + "/" + name;
    std::filesystem::create_directory(where);
    const auto end =
        run_job(testbed, processes_of(contender, brief(), testbed, runners, where), 60, stop);
    CAPTURE(end.status().message());
    REQUIRE(end.ok());
    const auto timed = timed_run_from(end->output);
    REQUIRE(timed.ok());
    // Not CHECK: a test that says SKIPPED of others would hide it.
    REQUIRE(timed->round_s > 0);
    REQUIRE(timed->bytes.value_or(1) > 0);
  }
  if (!missing.empty()) {
    SOTTO_SKIP(missing);
  }
}

TEST_CASE("all that train are told of the same task and model, a perceptron on MNIST or another") {
  const Testbed testbed({.hosts = 2, .loopback = true});
  const Runners runners = {.sotto = SOTTO_PROGRAM};
  const auto told = [&](const TrainingSettings& training, std::string_view name) {
    const auto processes =
        processes_of(named(training_contenders(), name),
                     {.hidden = 7, .rounds = 3, .training = training}, testbed, runners, "folder");
    REQUIRE(processes.size() == 2);
    return fmt::format(" {} ", fmt::join(processes[1].words, " "));
  };
  const TrainingSettings images = {.mnist = "DIR"};
  const TrainingSettings text = {.task = "text:FILE,context=32", .model = "transformer:1,8,2"};
  const TrainingSettings images_by_another = {.mnist = "DIR", .model = "cnn"};
  for (const char* name : {"sotto dcd quant:8", "gloo ring", "ddp powersgd:1"}) {
    CAPTURE(name);
    CHECK(told(images, name).find(" --task=mnist:DIR --model=mlp:7 ") != std::string::npos);
    CHECK(told(text, name).find(" --task=text:FILE,context=32 --model=transformer:1,8,2 ") !=
          std::string::npos);
    CHECK(told(images_by_another, name).find(" --task=mnist:DIR --model=cnn ") !=
          std::string::npos);
  }
}

TEST_CASE("what a program cannot train is said of it, and nothing of what it can") {
  const TrainingSettings images = {.mnist = "DIR"};
  const TrainingSettings wide = {.mnist = "DIR", .model = "mlp:1258"};
  const TrainingSettings text = {.task = "text:FILE,context=32", .model = "transformer:1,8,2"};
  const TrainingSettings adamw = {
      .task = "text:FILE", .model = "transformer", .step_rule = "adamw"};
  for (const TrainingSettings& known : {images, wide, text, adamw}) {
    CHECK_FALSE(known.unknown_to(Runner::ddp_peer));
  }
  for (const TrainingSettings& other :
       {TrainingSettings{.mnist = "DIR", .model = "cnn"},
        TrainingSettings{.mnist = "DIR", .model = "transformer"},
        TrainingSettings{.task = "text:FILE", .model = "mlp:8"},
        TrainingSettings{.task = "text:FILE"},
        TrainingSettings{.task = "text:FILE", .model = "transformer:4,64,4,share=2"},
        TrainingSettings{.mnist = "DIR", .model = "mlp:64,32"},
        TrainingSettings{.task = "mnist:DIR,set=fashion", .model = "mlp:8"},
        TrainingSettings{.task = "csv:FILE", .model = "mlp:8"}}) {
    CHECK(other.unknown_to(Runner::ddp_peer));
    CHECK_FALSE(other.unknown_to(Runner::gloo_trainer));
  }
  CHECK(adamw.unknown_to(Runner::gloo_trainer));
  CHECK_FALSE(adamw.unknown_to(Runner::sotto));
}

TEST_CASE("a contender that fails is told with its own words, and no deadline is waited for") {
  const Testbed testbed({.hosts = 2, .loopback = true});
  const std::atomic<bool> stop{false};
  const auto failed =
      run_job(testbed,
              {{.host = 0, .words = {"/bin/sleep", "60"}, .variables = {}},
               {.host = 1, .words = {"/bin/sh", "-c", "echo why >&2; exit 3"}, .variables = {}}},
              60, stop);
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.status().message() == "process 1 ended with status 3: why");
  const auto late =
      run_job(testbed, {{.host = 0, .words = {"/bin/sleep", "60"}, .variables = {}}}, 0.05, stop);
  REQUIRE_FALSE(late.ok());
  CHECK(late.status().message() == "it was not over after 0.05 s");
  const std::atomic<bool> stopped{true};
  CHECK_FALSE(
      run_job(testbed, {{.host = 0, .words = {"/bin/sleep", "60"}, .variables = {}}}, 60, stopped)
          .ok());
}

}  // namespace sotto::test::race_test
