// The subcommands of `netlab`: each adds itself to the program and returns what runs it. One thread
// at a time.
#pragma once

#include <string>
#include <vector>

#include <sotto/console/command.h>

#include "comparison.h"

namespace sotto::netlab {

/// What all of them understand.
struct LabRequest {
  console::CommonOptions common;
  std::string program;  ///< path of `sotto`
  std::string transport = "both";

  /// Throws Error where the program cannot be run.
  void check_program() const;
  /// The real program, what stops it, and progress on standard error unless that is unwanted.
  /// Throws Error where the program cannot be run.
  Laboratory laboratory() const;
  /// Transports that are asked for. Throws Error for a name that is none.
  std::vector<std::string> transports() const;
};

/// Says on standard error what failed, unless it did because of Ctrl-C; returns the exit status.
int failed(const std::string& what);

/// `request` must live as long as the command.
void add_lab_options(CLI::App& command, LabRequest& request);

// `program` is the path of `sotto` unless another is asked for.
console::Command add_run_command(CLI::App& netlab, const std::string& program);
console::Command add_calibrate_command(CLI::App& netlab, const std::string& program);
console::Command add_heldout_command(CLI::App& netlab, const std::string& program);
console::Command add_loss_command(CLI::App& netlab, const std::string& program);
console::Command add_links_command(CLI::App& netlab, const std::string& program);
console::Command add_corners_command(CLI::App& netlab, const std::string& program);
console::Command add_overhead_command(CLI::App& netlab, const std::string& program);
console::Command add_race_command(CLI::App& netlab, const std::string& program);
console::Command add_finish_command(CLI::App& netlab, const std::string& program);
console::Command add_launch_command(CLI::App& netlab);

}  // namespace sotto::netlab
