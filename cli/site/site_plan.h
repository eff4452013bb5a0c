// From a site's file to what is to be run: keys, peers and data are read, everything that can be
// refused has been. Plain values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <sotto/trainers/federated/site_options.h>
#include <sotto/trainers/task_registry.h>

#include "output.h"
#include "site_config.h"

namespace sotto::cli {

struct SitePlan {
  SiteOptions run;
  std::unique_ptr<Task> task;
  std::size_t examples = 0;  ///< of this site; 0 where the task has none
  Json config;               ///< all settings as used
  std::vector<std::string> warnings;
};

/// Throws Error.
SitePlan make_site_plan(const SiteConfig& config);

}  // namespace sotto::cli
