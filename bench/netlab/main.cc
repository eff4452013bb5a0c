// The program `netlab`: the real `sotto train` on an emulated network, against the simulator and
// against other programs.

#include <cstdio>
#include <exception>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <sotto/base/error.h>
#include <sotto/console/flag_spelling.h>
#include <sotto/console/signals.h>
#include <sotto/console/usage.h>

#include "lab_commands.h"

namespace {

int complain(const std::string& what, int status) {
  fmt::print(stderr, "netlab: {}\n", what);
  return status;
}

/// As shells have it: 128 + SIGINT.
constexpr int kInterrupted = 130;

bool stopped(int status) {
  return status != sotto::console::kDone && sotto::console::stop_requested();
}

}  // namespace

int main(int argc, char** argv) {
  using namespace sotto::netlab;
  CLI::App program(
      "Runs the real program on an emulated network. Needs Linux and, but for --loopback, root.",
      "netlab");
  program.require_subcommand(1);
  program.footer(
      "Nothing outlives netlab: hosts, links and processes go when it ends, however it ends.");
  const std::vector<sotto::console::Command> commands = {
      add_run_command(program, SOTTO_PROGRAM),      add_calibrate_command(program, SOTTO_PROGRAM),
      add_heldout_command(program, SOTTO_PROGRAM),  add_loss_command(program, SOTTO_PROGRAM),
      add_links_command(program, SOTTO_PROGRAM),    add_corners_command(program, SOTTO_PROGRAM),
      add_overhead_command(program, SOTTO_PROGRAM), add_race_command(program, SOTTO_PROGRAM),
      add_finish_command(program, SOTTO_PROGRAM),   add_launch_command(program)};
  try {
    program.parse(argc, argv);
    for (const auto& command : commands) {
      if (command.app->parsed()) {
        const int status = command.run();
        return stopped(status) ? complain("interrupted", kInterrupted) : status;
      }
    }
    return sotto::console::kWrongRequest;
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0
               ? program.exit(error)  // --help
               : complain(sotto::console::explain(program, error), sotto::console::kWrongRequest);
  } catch (const sotto::Error& error) {
    return complain(error.render(sotto::console::FlagSpelling(program)),
                    sotto::console::kWrongRequest);
  } catch (const std::exception& error) {
    if (stopped(sotto::console::kFailed)) {
      return complain("interrupted", kInterrupted);
    }
    return complain(error.what(), sotto::console::kFailed);
  }
}
