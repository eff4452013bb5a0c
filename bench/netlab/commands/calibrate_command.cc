// `netlab calibrate`: what the simulator is told of TCP and of the program.
#include <memory>

#include <fmt/format.h>

#include <sotto/console/signals.h>

#include "bench/netlab/command_options.h"
#include "bench/netlab/prediction/calibration.h"
#include "commands.h"

namespace sotto::netlab {
namespace {

constexpr const char* kCalibrateExamples =
    "Examples:\n"
    "  netlab calibrate\n"
    "  netlab calibrate --transport gloo --json calibration.json\n"
    "It measures between two nodes and prints what a scenario file says of it.";

int run(const CommandOptions& request) {
  const console::Output output(request.common);
  console::catch_stop_signals();
  const auto found = calibrate(request.transports(), request.real_program());
  if (!found.ok()) {
    return failed(found.status().message());
  }
  for (const std::string& transport : request.transports()) {
    output.line(calibration_toml(*found, transport));
  }
  output.json(calibration_json(*found));
  return console::kDone;
}

}  // namespace

console::Command add_calibrate_command(CLI::App& netlab, const std::string& program) {
  auto request = std::make_shared<CommandOptions>();
  request->program = program;
  CLI::App* command = netlab.add_subcommand(
      "calibrate", "Measures between two nodes what predictions are made with");
  add_command_options(*command, *request);
  command->footer(kCalibrateExamples);
  return {command, [request] { return run(*request); }};
}

}  // namespace sotto::netlab
