// The program `sotto`: finds the command, reads its settings, runs it, and turns what went wrong
// into a message and an exit status.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <sotto/base/error.h>

#include "commands.h"
#include "config_file.h"
#include "signals.h"
#include "usage.h"

namespace {

using sotto::cli::Command;

int complain(const std::string& what, int status) {
  fmt::print(stderr, "sotto: {}\n", what);
  return status;
}

int run_chosen(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (!command.app->parsed()) {
      continue;
    }
    if (const auto* config = command.app->get_option_no_throw("--config");
        config != nullptr && config->count() > 0) {
      sotto::cli::apply_config_file(*command.app, config->as<std::string>());
    }
    return command.run();
  }
  return sotto::cli::kWrongRequest;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("Trains one model on many machines that barely talk.", "sotto");
  program.set_version_flag("--version", "sotto " SOTTO_VERSION);
  program.require_subcommand(1);
  program.footer("`sotto COMMAND --help` explains a command and shows examples.");
  const std::vector<Command> commands = sotto::cli::add_all_commands(program);
  try {
    program.parse(argc, argv);
    const int status = run_chosen(commands);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      return complain("standard output could not be written; the result is lost",
                      sotto::cli::kFailed);
    }
    // As shells have it for a process that a signal ended.
    return status == sotto::cli::kFailed && sotto::cli::stop_requested()
               ? 128 + sotto::cli::stop_signal()
               : status;
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0
               ? program.exit(error)  // --help and --version
               : complain(sotto::cli::explain(program, error), sotto::cli::kWrongRequest);
  } catch (const sotto::Error& error) {
    return complain(sotto::cli::with_option_names(error.what()), sotto::cli::kWrongRequest);
  } catch (const std::exception& error) {
    return complain(error.what(), sotto::cli::kFailed);
  }
}
