#include "commands.h"

namespace sotto::cli {

std::vector<console::Command> add_all_commands(CLI::App& program) {
  std::vector<console::Command> commands = {
      add_train_command(program),  add_compare_command(program),  add_simulate_command(program),
      add_plan_command(program),   add_topology_command(program), add_list_command(program),
      add_node_command(program),   add_keygen_command(program),   add_status_command(program),
      add_faults_command(program),
  };
  CLI::App* site = program.add_subcommand("site", "Helps the operators of sites");
  site->require_subcommand(1);
  commands.push_back(add_site_audit_command(*site));
  commands.push_back(add_site_check_command(*site));
  commands.push_back(add_site_init_command(*site));
  CLI::App* data = program.add_subcommand("data", "Looks into files to train on");
  data->require_subcommand(1);
  commands.push_back(add_data_check_command(*data));
  commands.push_back(add_data_scaling_command(*data));
  CLI::App* checkpoint =
      program.add_subcommand("checkpoint", "Looks into saved states, and takes models out");
  checkpoint->require_subcommand(1);
  commands.push_back(add_export_command(*checkpoint));
  commands.push_back(add_inspect_command(*checkpoint));
  commands.push_back(add_quantize_command(*checkpoint));
  commands.push_back(add_untie_command(*checkpoint));
  CLI::App* bench = program.add_subcommand("bench", "Measures how fast the parts are here");
  bench->require_subcommand(1);
  commands.push_back(add_bench_codec_command(*bench));
  commands.push_back(add_bench_exchange_command(*bench));
  commands.push_back(add_bench_sim_command(*bench));
  commands.push_back(add_completion_command(program));
  commands.push_back(add_man_command(program));
  return commands;
}

}  // namespace sotto::cli
