// The subcommands of `netlab`: each adds itself to the program and returns what runs it. One thread
// at a time.
#pragma once

#include <string>

#include <sotto/console/command.h>

namespace sotto::netlab {

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
console::Command add_streams_command(CLI::App& netlab);

}  // namespace sotto::netlab
