// The options that the subcommands of `netlab` share. One thread at a time.
#pragma once

#include <string>
#include <vector>

#include <sotto/console/command.h>

#include "bench/netlab/prediction/real_program.h"

namespace sotto::netlab {

/// What all commands that run `sotto` understand.
struct CommandOptions {
  console::CommonOptions common;   ///< --seed, --json and their like
  std::string program;             ///< the path of `sotto`
  std::string transport = "both";  ///< gloo, zmq or both

  /// Throws Error where the program cannot be run.
  void check_program() const;
  /// The real program, what stops it, and progress on standard error unless that is unwanted.
  /// Throws Error where the program cannot be run.
  RealProgram real_program() const;
  /// Transports that are asked for. Throws Error for a name that is none.
  std::vector<std::string> transports() const;
};

/// Says on standard error what failed, unless it did because of Ctrl-C. Returns the exit status.
int failed(const std::string& what);

/// `options` must live as long as the command.
void add_command_options(CLI::App& command, CommandOptions& options);

}  // namespace sotto::netlab
