#include "cli/fuzzed_files.h"

#include <CLI/CLI.hpp>

#include <sotto/base/check.h>

#include "config_file.h"
#include "site/site_config.h"
#include "train/train_flags.h"

namespace sotto::test {

void read_as_site(const std::string& path) {
  const auto site = cli::read_site_config(path);
  check(!site.site.names.name.empty() && !site.site.state.empty(),
        "a site has a name and a folder");
}

void read_as_config(const std::string& path) {
  CLI::App train("sotto train");
  cli::TrainFlags options;
  cli::add_train_options(train, options);
  cli::apply_config_file(train, path);
}

}  // namespace sotto::test
