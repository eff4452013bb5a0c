// `netlab run`: the runs of a scenario, predicted and real.
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <sotto/console/option_group.h>
#include <sotto/console/signals.h>
#include <sotto/study/train/run_spec.h>

#include "bench/netlab/command_options.h"
#include "bench/netlab/network/scenario_network.h"
#include "bench/netlab/prediction/calibration.h"
#include "bench/netlab/prediction/comparison.h"
#include "bench/netlab/prediction/comparison_report.h"
#include "commands.h"

namespace sotto::netlab {
namespace {

constexpr const char* kRunExamples =
    "Examples:\n"
    "  netlab run examples/scenarios/ocean.toml\n"
    "  netlab run scenario.toml --transport zmq --json result.json";

struct RunRequest {
  CommandOptions options;
  std::string scenario;
};

int run(const RunRequest& request, const CLI::App& command) {
  const console::Output output(request.options.common);
  const study::Scenario scenario =
      study::read_scenario(request.scenario, console::given_seed(command, request.options.common));
  check_emulable(scenario);
  for (const study::RunSpec& run : scenario.runs) {
    (void)joined_settings(run, scenario.task_settings);  // refuse what is wrong before any runs
  }
  console::catch_stop_signals();
  const RealProgram program = request.options.real_program();
  const auto calibration = calibrate(request.options.transports(), program);
  if (!calibration.ok()) {
    return failed("calibration failed: " + calibration.status().message());
  }
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> faults;
  Json runs = Json::array();
  bool complete = true;
  for (const study::RunSpec& run : scenario.runs) {
    for (const std::string& transport : request.options.transports()) {
      const Comparison found =
          compare(calibrated(scenario, *calibration, transport), run.name, transport, program);
      if (console::stop_requested()) {
        return console::kFailed;
      }
      complete = complete && found.as_predicted();
      rows.push_back(comparison_row(found));
      runs.push_back(comparison_json(found));
      for (std::string& line : fault_lines(found)) {
        faults.push_back(std::move(line));
      }
    }
  }
  output.table(comparison_titles(), rows);
  for (const std::string& line : faults) {
    output.line(line);
  }
  output.json({{"sotto", SOTTO_VERSION},
               {"scenario", scenario.title},
               {"calibration", calibration_json(*calibration)},
               {"runs", runs}});
  return complete ? console::kDone : console::kFailed;
}

}  // namespace

console::Command add_run_command(CLI::App& netlab, const std::string& program) {
  auto request = std::make_shared<RunRequest>();
  request->options.program = program;
  CLI::App* command = netlab.add_subcommand(
      "run", "Runs a scenario with the real program, and says how well it was predicted");
  console::OptionGroup group(*command, "What is run");
  group.option("SCENARIO", request->scenario, "FILE.toml", "As for `sotto simulate`").required();
  add_command_options(*command, request->options);
  console::default_to_scenario_seed(*command);
  command->footer(kRunExamples);
  return {command, [command, request] { return run(*request, *command); }};
}

}  // namespace sotto::netlab
