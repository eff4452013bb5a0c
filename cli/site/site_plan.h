// From a site's file to what is to be run: keys, peers and data are read, everything that can be
// refused has been. Plain values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <sotto/console/output.h>
#include <sotto/sites/process/site_options.h>
#include <sotto/trainers/settings/agreed_settings.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "site_config.h"

namespace sotto::cli {

struct SitePlan {
  SiteOptions run;
  std::unique_ptr<Task> task;
  std::vector<float> parameters;  ///< the initial model
  Round eval_every = 0;           ///< rounds between evaluations
  std::size_t examples = 0;       ///< number of this site's; 0 where the task has none
  Json config;                    ///< all settings as used
  std::vector<std::string> warnings;
  std::vector<std::string> of_data;  ///< what the data's loader left out, or found odd
  std::vector<std::string> notices;  ///< what its operator should know, though nothing is amiss
};

/// What all sites must share, as far as a site's file and its scaling say it: without what its data
/// and the file named by `init` say. Throws Error for a setting that is refused.
AgreedSettings settings_in_file(const SiteConfig& config);

/// Reads all that a site's file names. Throws Error.
SitePlan make_site_plan(const SiteConfig& config);

}  // namespace sotto::cli
