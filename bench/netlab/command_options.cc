#include "command_options.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/console/option_group.h>
#include <sotto/console/signals.h>

namespace sotto::netlab {

std::vector<std::string> CommandOptions::transports() const {
  if (transport == "both") {
    return {"gloo", "zmq"};
  }
  if (transport != "gloo" && transport != "zmq") {
    refuse("--transport", transport, "it is gloo, zmq or both");
  }
  return {transport};
}

void CommandOptions::check_program() const {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(program, unknown) || ::access(program.c_str(), X_OK) != 0) {
    refuse("--program", program, "no program can be run there; it is a path of sotto");
  }
}

RealProgram CommandOptions::real_program() const {
  check_program();
  RealProgram real = {program, &console::stop_requested(), {}};
  if (!common.quiet) {
    real.say = [](const std::string& what) { fmt::print(stderr, "netlab: {}\n", what); };
  }
  return real;
}

int failed(const std::string& what) {
  if (!console::stop_requested()) {
    fmt::print(stderr, "netlab: {}\n", what);
  }
  return console::kFailed;
}

void add_command_options(CLI::App& command, CommandOptions& options) {
  console::OptionGroup group(command, "The real program");
  group.option("--program", options.program, "PATH", "The `sotto` that runs on each node");
  group.option("--transport", options.transport, "NAME", "gloo, zmq or both");
  console::add_common_options(command, options.common);
  command.remove_option(command.get_option("--config"));
}

}  // namespace sotto::netlab
