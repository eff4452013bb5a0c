// The subcommands of `sotto`: how one is added.
//
// To add a command NAME: write cli/NAME.cc, or a folder where the command has several files, with a
// function `Command add_NAME_command(CLI::App&)`, declare it below, and list it in all_commands.cc
// (ARCHITECTURE.md says which folders there are). The function adds a subcommand and its options,
// bound to variables that the returned `run` owns; it reads nothing and prints nothing. `run` is
// called after the command line and --config have been read. It returns the exit status (0 done, 1
// the run failed) and throws sotto::Error when the request is wrong (status 2). One thread at a
// time.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <CLI/App.hpp>

#include <sotto/console/command.h>

namespace sotto::cli {

/// All of them, below the program `sotto`.
std::vector<console::Command> add_all_commands(CLI::App& program);

/// A command behind whose own options stand those of all commands, and `examples` behind its help;
/// `run` is called with `options`, whose `common` the latter set.
template <typename Options>
console::Command completed(CLI::App& command, std::shared_ptr<Options> options,
                           const char* examples, int (*run)(const Options&)) {
  add_common_options(command, options->common);
  command.footer(examples);
  return {&command, [options = std::move(options), run] { return run(*options); }};
}

console::Command add_compare_command(CLI::App& program);
console::Command add_completion_command(CLI::App& program);
console::Command add_keygen_command(CLI::App& program);
console::Command add_faults_command(CLI::App& program);
console::Command add_list_command(CLI::App& program);
console::Command add_man_command(CLI::App& program);
console::Command add_node_command(CLI::App& program);
console::Command add_plan_command(CLI::App& program);
console::Command add_simulate_command(CLI::App& program);
console::Command add_status_command(CLI::App& program);
console::Command add_topology_command(CLI::App& program);
console::Command add_train_command(CLI::App& program);
/// Below `sotto site`.
console::Command add_site_audit_command(CLI::App& site);
console::Command add_site_check_command(CLI::App& site);
console::Command add_site_init_command(CLI::App& site);
/// Below `sotto data`.
console::Command add_data_check_command(CLI::App& data);
console::Command add_data_scaling_command(CLI::App& data);
/// Below `sotto checkpoint`.
console::Command add_export_command(CLI::App& checkpoint);
console::Command add_inspect_command(CLI::App& checkpoint);
console::Command add_quantize_command(CLI::App& checkpoint);
console::Command add_untie_command(CLI::App& checkpoint);
/// One of the benchmarks below `sotto bench`.
console::Command add_bench_codec_command(CLI::App& bench);
console::Command add_bench_exchange_command(CLI::App& bench);
console::Command add_bench_sim_command(CLI::App& bench);

}  // namespace sotto::cli
