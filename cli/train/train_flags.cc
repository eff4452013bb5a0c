#include "train_flags.h"

#include <sotto/console/option_group.h>

namespace sotto::cli {

void add_train_options(CLI::App& command, TrainFlags& flags) {
  for (const SettingGroup& settings : train_settings(flags)) {
    console::OptionGroup group(command, std::string(settings.title));
    for (const Setting& setting : settings.settings) {
      if (setting.name != "seed") {  // which all commands have
        group.add(setting);
      }
    }
  }
  command.get_option("--rounds")->excludes(command.get_option("--epochs"));
  command.get_option("--nodes")->description(
      "Number of nodes; 8, or what the data or the graph says by itself");
  add_common_options(command, flags.common, flags.seed);
}

}  // namespace sotto::cli
