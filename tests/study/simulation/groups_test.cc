// Groups of nodes in scenarios: the same bits as over threads, and a run of timing only.
#include <fstream>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include <sotto/study/simulation/scenario_runs.h>
#include <sotto/study/simulation/simulated_run.h>
#include <sotto/study/train/train_plan.h>
#include <sotto/trainers/run.h>

#include "support/scratch.h"

namespace sotto::test::groups_test {

using namespace sotto::study;

namespace {

class GroupsFile {
 public:
  GroupsFile() { std::ofstream(path()) << "# two sites\n0 3\n1 2\n"; }
  std::string path() const { return (scratch_.path() / "groups").string(); }

 private:
  Scratch scratch_;
};

std::string scenario_text(const std::string& groups, const std::string& more = "") {
  return "sotto-scenario = 1\nrun = [\"choco quant:4 ring\"]\n"
         "nodes = { count = 4, gradient = \"5 ms\" }\nnetwork = { link = \"wan\" }\n" +
         more + "[task]\ntask = \"digits,train=300,test=60\"\nmodel = \"softmax\"\nrounds = 6\n" +
         "groups = \"" + groups + "\"\n";
}

}  // namespace

TEST_CASE("a scenario with groups gives the bits of the same run over threads") {
  const GroupsFile file;
  const Scenario scenario = parse_scenario("text", scenario_text(file.path()));
  const SimulatedRun simulated = simulate_run(scenario, scenario.runs[0], {.timeline = true});
  const TrainPlan plan = make_train_plan(with_run(scenario.task, scenario.runs[0]));
  RunOptions threads = plan.run;
  threads.optimizer.transport = "inproc";
  const auto real = run_threads(threads, [&](Rank rank) { return plan.unpaced_task_of(rank); }, {});
  REQUIRE_MESSAGE(real.ok(), real.status().message());
  CHECK(simulated.result.parameters_sha256 == real->parameters_sha256);
  CHECK(simulated.result.parameters_sha256[0] == simulated.result.parameters_sha256[3]);
  CHECK(simulated.result.parameters_sha256[0] != simulated.result.parameters_sha256[1]);
  CHECK(simulated.graph->nodes() == 4);
  CHECK(simulated.graph->edge_count(0) == 8);  // one partner within, one between
}

TEST_CASE("a run of groups for timing only sends what the run with gradients sends") {
  const GroupsFile file;
  const Scenario full = parse_scenario("text", scenario_text(file.path()));
  const Scenario timed = parse_scenario("text", scenario_text(file.path(), "timing-only = true\n"));
  const SimulationResult with = simulate_run(full, full.runs[0]).result;
  const SimulationResult without = simulate_run(timed, timed.runs[0]).result;
  CHECK(with.bytes_sent == without.bytes_sent);
  CHECK(with.virtual_s == without.virtual_s);
}

}  // namespace sotto::test::groups_test
