// All runs of a scenario through the library: what is warned of and refused, how they end, and what
// programs in other languages get.
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <sotto/base/error.h>
#include <sotto/study/json/runs.h>
#include <sotto/study/simulation/scenario_runs.h>
#include <sotto/study/study_settings.h>

namespace sotto::test::scenario_runs_test {

using namespace sotto::study;

namespace {

/// Line 1 is the version, 2 the runs, 3 the nodes, 4 the network, 5 and on the task.
std::string text_of(const std::string& runs, const std::string& task = "") {
  return "sotto-scenario = 1\nrun = [" + runs +
         "]\nnodes = { count = 3, gradient = \"5 ms\" }\nnetwork = { link = \"wan\" }\n[task]\n"
         "task = \"digits,train=300,test=60\"\nmodel = \"softmax\"\nrounds = 6\neval-every = 2\n" +
         task;
}

const std::string kRuns = "\"allreduce\", \"dcd quant:8 ring\"";

std::string refusal(const auto& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("runs are told as they begin and end, and give what one alone gives") {
  const Scenario scenario = parse_scenario("text", text_of(kRuns));
  CHECK(check_runs(scenario).empty());
  std::vector<std::string> heard;
  const auto outcomes =
      simulate_runs(scenario, {},
                    {.begins = [&](std::size_t run) { heard.push_back(std::to_string(run)); },
                     .ends = [&](const RunOutcome& run) { heard.push_back(run.name); }});
  CHECK(heard == std::vector<std::string>{"0", "allreduce", "1", "dcd quant:8 ring"});
  REQUIRE(outcomes.size() == 2);
  const SimulatedRun alone = simulate_run(scenario, scenario.runs[1]);
  REQUIRE(outcomes[1].run);
  CHECK(outcomes[1].fault.ok());
  CHECK(outcomes[1].run->result.trace_sha256 == alone.result.trace_sha256);
  CHECK(outcomes[1].run->result.parameters_sha256 == alone.result.parameters_sha256);
}

TEST_CASE("what is stopped says so, and what follows does not begin") {
  const Scenario scenario = parse_scenario("text", text_of(kRuns));
  int begun = 0;
  int rounds = 0;
  const auto outcomes = simulate_runs(scenario, {.stop = [&] { return ++rounds > 3; }},
                                      {.begins = [&](std::size_t) { ++begun; }, .ends = {}});
  CHECK(begun == 1);
  REQUIRE(outcomes.size() == 2);
  for (const RunOutcome& outcome : outcomes) {
    CHECK(outcome.fault.fault() == Fault::stopped);
  }
  // What came to be until then is kept.
  REQUIRE(outcomes[0].run);
  const SimulationResult& part = outcomes[0].run->result;
  CHECK(part.interrupted);
  CHECK(part.early_end() == "interrupted");
  REQUIRE(part.history.size() == 1);
  const SimulationResult whole = simulate_run(scenario, scenario.runs[0]).result;
  CHECK(part.history.front().loss == whole.history.front().loss);
  CHECK_FALSE(whole.interrupted);
  CHECK_FALSE(outcomes[1].run);
  CHECK(outcomes[0].fault.message() == "interrupted");
  CHECK(outcomes[1].fault.message() == "not run");
  // With several seeds, too, before the first evaluation.
  int asked = 0;
  const auto repeated =
      repeated_runs(simulate_runs(scenario, {.stop = [&] { return ++asked > 1; }}, {}, 2));
  const auto spread = runs_json(scenario, repeated, Expense::epochs).at("over_seeds");
  CHECK(spread[0].at("loss").at("count") == 0);
  SimulateSettings settings;
  settings.scenario_text = text_of(kRuns);
  const auto json = simulated_json(settings, [] { return true; });
  CHECK(json.status().fault() == Fault::stopped);
}

TEST_CASE("each of several seeds gives what it gives alone, and stands beside the others") {
  constexpr std::uint64_t kSeed = 41;
  constexpr std::uint64_t kSeeds = 3;
  const Scenario scenario = parse_scenario("text", text_of(kRuns), kSeed);
  CHECK(names_of_runs(scenario, 2) ==
        std::vector<std::string>{"allreduce, seed 41", "allreduce, seed 42",
                                 "dcd quant:8 ring, seed 41", "dcd quant:8 ring, seed 42"});
  std::vector<std::size_t> begun;
  const auto outcomes = simulate_runs(
      scenario, {}, {.begins = [&](std::size_t run) { begun.push_back(run); }, .ends = {}}, kSeeds);
  CHECK(begun == std::vector<std::size_t>{0, 1, 2, 3, 4, 5});
  const auto runs = by_run(outcomes);
  REQUIRE(runs.size() == 2);
  for (std::size_t run = 0; run < runs.size(); ++run) {
    REQUIRE(runs[run].size() == kSeeds);
    for (std::uint64_t more = 0; more < kSeeds; ++more) {
      const RunOutcome& outcome = runs[run][more];
      CHECK(outcome.name == scenario.runs[run].name);
      CHECK(outcome.seed == kSeed + more);
      const Scenario seeded = parse_scenario("text", text_of(kRuns), kSeed + more);
      CHECK(outcome.run->result.parameters_sha256 ==
            simulate_run(seeded, seeded.runs[run]).result.parameters_sha256);
    }
  }
  const auto repeated = repeated_runs(outcomes);
  REQUIRE(repeated.size() == 2);
  CHECK(repeated[0].several());
  CHECK(repeated[0].results.size() == kSeeds);
  const auto json = runs_json(scenario, repeated, Expense::epochs);
  CHECK(json.at("runs").size() == 2 * kSeeds);
  const auto& loss = json.at("over_seeds")[1].at("loss");
  double sum = 0;
  for (const RunOutcome& outcome : runs[1]) {
    const double found = outcome.run->result.final->mean.loss;
    CHECK(loss.at("low").get<double>() <= found);
    CHECK(loss.at("high").get<double>() >= found);
    sum += found;
  }
  CHECK(loss.at("mean").get<double>() == doctest::Approx(sum / kSeeds));
  // Without a target there is no time to it.
  CHECK(json.at("over_seeds")[1].at("time_to_target_s").at("count") == 0);
}

TEST_CASE("a point of a sweep whose runs are refused is named") {
  const Scenario scenario = parse_scenario(
      "text", "sweep = { \"nodes.count\" = [4, 6] }\n" + text_of("\"dpsgd hypercube\""));
  CHECK(refusal([&] {
          check_runs(scenario);
        }).starts_with("with count=6: text:3: run: 'dpsgd hypercube'"));
}

TEST_CASE("runs are checked before the first begins, and warnings are kept with their run") {
  const std::string idle = "delayed-gradient = true\noverlap = \"off\"\n";
  const Scenario scenario = parse_scenario("text", text_of("\"choco quant:8 ring\"", idle));
  const auto warnings = check_runs(scenario);
  REQUIRE(warnings.size() == 1);
  CHECK(
      warnings[0].starts_with("choco quant:8 ring: task.delayed-gradient hides nothing with "
                              "task.overlap = \"off\""));
  const Scenario in_words =
      parse_scenario("text", text_of("\"choco quant:8 ring delayed-gradient=true overlap=off\""));
  const auto of_words = check_runs(in_words);
  REQUIRE(of_words.size() == 1);
  CHECK(
      of_words[0].ends_with(": delayed-gradient hides nothing with overlap=off, and still delays"));
  const auto outcomes = simulate_runs(scenario, {});
  REQUIRE(outcomes[0].run);
  REQUIRE(outcomes[0].run->result.warnings.size() == 1);
  CHECK("choco quant:8 ring: " + outcomes[0].run->result.warnings[0] == warnings[0]);
  CHECK(refusal([] {
          check_runs(parse_scenario("text", text_of("\"dpsgd rounds=0\"")));
        }).starts_with("text:2: run: 'dpsgd rounds=0': rounds: '0' is refused"));
}

TEST_CASE("what refuses a run names the keys of the file, and the words of the run") {
  const auto why = [](const std::string& run, const std::string& task = "") {
    return refusal([&] { check_runs(parse_scenario("text", text_of("\"" + run + "\"", task))); });
  };
  CHECK(
      why("dpsgd", "noise-multiplier = 1\n") ==
      "text:10: task.noise-multiplier: noise hides only what is bounded: give task.clip-norm too, "
      "e.g. 1");
  CHECK(why("dpsgd noise-multiplier=1", "clip_norm = 0\n")
            .starts_with("text:10: task.clip_norm: '0' is refused"));
  CHECK(why("dpsgd epochs=1 rounds=2") ==
        "text:2: run: 'dpsgd epochs=1 rounds=2': epochs excludes rounds");
  CHECK(why("dpsgd lr=fast").starts_with("text:2: run: 'dpsgd lr=fast': lr: "));
  CHECK(why("dcd topk:0.1")
            .starts_with("text:2: run: 'dcd topk:0.1': compressor: 'topk:0.1' is refused: "));
  CHECK(why("dcd topk:0.1")
            .ends_with("or allow it explicitly with task.allow-contract-violation = true"));
  CHECK(why("dcd", "overlap = \"off\"\nlr = -1\n").starts_with("text:11: task.lr: '-1'"));
}

TEST_CASE("settings of a study are set by name, and refused by it") {
  SimulateSettings settings;
  settings.scenario_text = text_of(kRuns);
  CHECK(set({scenario_settings(settings), settings_of(settings)}, "seed", "5"));
  CHECK(set({settings_of(settings)}, "equal", "bytes"));
  CHECK_FALSE(set({scenario_settings(settings), settings_of(settings)}, "budget", "5"));
  const auto text = simulated_json(settings);
  REQUIRE(text.ok());
  const auto json = nlohmann::json::parse(*text);
  CHECK(json.at("runs").size() == 2);
  CHECK(json.at("runs").at(0).at("config").at("seed") == 5);
  CHECK(json.at("runs").at(0).contains("at_equal"));
  settings.equal = "rounds";
  CHECK(refusal([&] { (void)simulated_json(settings); }).starts_with("equal: 'rounds'"));
  settings.scenario = "a.toml";
  CHECK(refusal([&] { (void)scenario_of(settings); }).starts_with("scenario: it has a text"));

  PlanSettings plan;
  CHECK(refusal([&] { (void)planned_json(plan); }).starts_with("scenario: it is missing"));
  const Scenario timing = parse_scenario("text", "timing-only = true\n" + text_of(kRuns));
  CHECK(search_options(plan, timing).budget == SearchOptions().budget);
  plan.rank_by = "worst";
  CHECK(search_options(plan, parse_scenario("text", text_of(kRuns))).by_worst);
  CHECK(refusal([&] {
          (void)search_options(plan, timing);
        }).starts_with("rank_by: 'worst' is refused: the scenario is timing-only"));
  plan.seeds = 0;
  CHECK(refusal([&] { (void)search_options(plan, timing); }).starts_with("seeds: '0'"));
}

}  // namespace sotto::test::scenario_runs_test
