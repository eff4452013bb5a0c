#include "commands.h"

namespace sotto::cli {

void add_common_options(CLI::App& command, CommonOptions& options) {
  command.add_option("--json", options.json, "Write the result as JSON to FILE; - is stdout")
      ->type_name("FILE");
  command.add_flag("--quiet", options.quiet, "Print nothing but errors");
  command.add_option("--seed", options.seed, "Seed of everything random")
      ->type_name("S")
      ->capture_default_str();
  command
      .add_option("--config", options.config,
                  "Take settings from a TOML file; the command line wins")
      ->type_name("FILE.toml");
}

}  // namespace sotto::cli
