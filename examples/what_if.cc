// Asks what would happen on a network that nobody has to have: simulates runs of a scenario in
// virtual time, then has the planner say which algorithm, bits and graph are there first.
#include <cstdio>
#include <string>

#include <sotto/base/error.h>
#include <sotto/study/plan/plan_search.h>
#include <sotto/study/plan/plan_verdict.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/simulation/simulated_run.h>

using namespace sotto::study;

int main(int argc, char** argv) try {
  const Scenario scenario = read_scenario(argc > 1 ? argv[1] : SOTTO_SCENARIO);
  for (const RunSpec& run : {parse_run("allreduce"), run_of("dcd", "quant:8", "ring")}) {
    const SimulationResult result = simulate_run(scenario, run).result;
    std::printf("%s: %.1f s, %.0f bytes a node\n", run.name.c_str(), result.virtual_s,
                result.bytes_per_node());
  }
  PlanSearch search({.codec = "none", .budget = 3, .seeds = 1}, scenario);
  const auto runs = search.find();
  if (!runs.ok()) {
    std::fprintf(stderr, "%s\n", runs.status().message().c_str());
    return 1;
  }
  const Verdict verdict = judge(*runs, search.ranking());
  for (const std::string& line : verdict.lines) {
    std::printf("%s\n", line.c_str());
  }
  return verdict.winner ? 0 : 1;
} catch (const sotto::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
