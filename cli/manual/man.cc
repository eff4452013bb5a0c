// `sotto man`: the program's manual pages, made of its own options.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/result_file.h>
#include <sotto/console/output.h>

#include "commands.h"
#include "manual/man_page.h"

namespace sotto::cli {
namespace {

struct ManOptions {
  std::vector<std::string> command;
  std::string directory;
};

int run_man(const CLI::App& app, const ManOptions& options) {
  const CommandWords program = words_of(app);
  if (!options.directory.empty()) {
    std::error_code code;
    std::filesystem::create_directories(options.directory, code);
    for (const CommandWords* command : all_of(program)) {
      write_result_file("directory", fmt::format("{}/{}.1", options.directory, command->name("-")),
                        man_page(*command, program));
    }
    return console::kDone;
  }
  std::vector<std::string> path = {program.path.front()};
  path.insert(path.end(), options.command.begin(), options.command.end());
  for (const CommandWords* command : all_of(program)) {
    if (command->path == path) {
      console::print_text(man_page(*command, program));
      return console::kDone;
    }
  }
  refuse("command", fmt::format("{}", fmt::join(options.command, " ")),
         "there is no such command; `sotto --help` shows them");
}

}  // namespace

console::Command add_man_command(CLI::App& program) {
  auto options = std::make_shared<ManOptions>();
  CLI::App* command = program.add_subcommand("man", "Writes manual pages");
  command->add_option("command", options->command, "The command; without one, the program")
      ->type_name("COMMAND");
  command->add_option("--directory", options->directory, "Write the pages of all commands here")
      ->type_name("DIR");
  command->footer(
      "Examples:\n"
      "  sotto man bench codec | man -l -\n"
      "  sotto man --directory ~/.local/share/man/man1");
  return {command, [&program, options] { return run_man(program, *options); }};
}

}  // namespace sotto::cli
