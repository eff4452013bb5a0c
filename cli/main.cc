// The program `sotto`: finds the command, reads its settings, runs it, and turns what went wrong
// into a message and an exit status.
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <sotto/base/error.h>
#include <sotto/console/flag_spelling.h>
#include <sotto/console/output.h>
#include <sotto/console/signals.h>
#include <sotto/console/usage.h>

#include "commands.h"
#include "config_file.h"

namespace {

using sotto::console::Command;

int complain(const std::string& what, int status) {
  sotto::console::say(what);
  return status;
}

/// The exit status, once standard output has taken all that was printed.
int finish(int status) {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return complain("standard output could not be written; the result is lost",
                    sotto::console::kFailed);
  }
  return status;
}

/// The exit status of a process that a signal has ended is 128 and its number.
int as_shells_have_it(int status) {
  return status == sotto::console::kFailed && sotto::console::stop_requested()
             ? 128 + sotto::console::stop_signal()
             : status;
}

/// Refuses what would be written over another result, or over what the command has read.
void check_files_differ(const CLI::App& command) {
  namespace fs = std::filesystem;
  std::map<fs::path, std::string> owners;
  for (const CLI::Option* option : command.get_options()) {
    // A model may be taken from a file and put back there.
    if (option->get_type_name().find("FILE") == std::string::npos ||
        option->get_name() == "--init") {
      continue;
    }
    for (const std::string& path : option->results()) {
      std::error_code unknown;
      const bool standard = path == "-";
      const bool read = option->get_positional() || option->get_name() == "--config";
      if (path.empty() || (standard && read) || fs::is_character_file(path, unknown)) {
        continue;
      }
      const fs::path place =
          standard ? fs::path(path) : fs::weakly_canonical(fs::absolute(path, unknown), unknown);
      if (unknown && !standard) {
        continue;  // whoever opens it says why
      }
      const auto [owner, first] = owners.emplace(place, option->get_name());
      if (!first) {
        sotto::refuse(option->get_name(), path,
                      fmt::format("it is {}'s file too; give each its own", owner->second));
      }
    }
  }
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
    check_files_differ(*command.app);
    return command.run();
  }
  return sotto::console::kWrongRequest;
}

}  // namespace

int main(int argc, char** argv) {
  // A file that may not grow is then a write that fails, with words, and not the end.
  std::signal(SIGXFSZ, SIG_IGN);
  CLI::App program("Trains one model on many machines that barely talk.", "sotto");
  program.set_version_flag("--version", "sotto " SOTTO_VERSION);
  program.require_subcommand(1);
  program.footer("`sotto COMMAND --help` explains a command and shows examples.");
  const std::vector<Command> commands = sotto::cli::add_all_commands(program);
  try {
    program.parse(argc, argv);
    return as_shells_have_it(finish(run_chosen(commands)));
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0
               ? finish(program.exit(error))  // --help and --version
               : complain(sotto::console::explain(program, error), sotto::console::kWrongRequest);
  } catch (const sotto::Stopped& stopped) {
    return as_shells_have_it(complain(stopped.what(), sotto::console::kFailed));
  } catch (const sotto::Shortage& shortage) {
    return complain(shortage.render(sotto::console::FlagSpelling(program)),
                    sotto::console::kFailed);
  } catch (const sotto::Error& error) {
    return complain(error.render(sotto::console::FlagSpelling(program)),
                    sotto::console::kWrongRequest);
  } catch (const std::bad_alloc&) {
    return complain(
        "memory ran out; use fewer nodes or a smaller model, or raise the limit (`ulimit -v`, the "
        "cgroup's memory.max)",
        sotto::console::kFailed);
  } catch (const std::exception& error) {
    return complain(error.what(), sotto::console::kFailed);
  }
}
