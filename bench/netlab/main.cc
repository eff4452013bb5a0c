// The program `netlab`: the real `sotto train` on an emulated network, against the simulator and
// against other programs.
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/netlab/commands/commands.h"
#include "bench/support/command_line.h"

int main(int argc, char** argv) {
  using namespace sotto::netlab;
  CLI::App program(
      "Runs the real program on an emulated network. Needs Linux and, but for --loopback, root.",
      "netlab");
  program.require_subcommand(1);
  program.footer(
      "Nothing outlives netlab: hosts, links and processes go when it ends, however it ends.");
  const std::vector<sotto::console::Command> commands = {
      add_run_command(program, SOTTO_PROGRAM),
      add_calibrate_command(program, SOTTO_PROGRAM),
      add_heldout_command(program, SOTTO_PROGRAM),
      add_loss_command(program, SOTTO_PROGRAM),
      add_links_command(program, SOTTO_PROGRAM),
      add_corners_command(program, SOTTO_PROGRAM),
      add_overhead_command(program, SOTTO_PROGRAM),
      add_race_command(program, SOTTO_PROGRAM),
      add_finish_command(program, SOTTO_PROGRAM),
      add_launch_command(program),
      add_streams_command(program)};
  return sotto::bench::run_main(program, argc, argv, [&] {
    for (const auto& command : commands) {
      if (command.app->parsed()) {
        return command.run();
      }
    }
    return sotto::console::kWrongRequest;
  });
}
