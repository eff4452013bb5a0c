// The parts of a running site that several of its objects use. Not for users.
//
// A plain value. Ownership: all is the caller's, and outlives the objects that use it.
#pragma once

#include <string>

#include <sotto/sites/core/site.h>
#include <sotto/sites/nodes/state/site_folder.h>
#include <sotto/sites/process/site_gradients.h>
#include <sotto/sites/process/site_options.h>

namespace sotto {

struct SiteParts {
  const SiteOptions& options;
  const std::string& settings;  ///< settings that sites must share, in words (settings_text)
  sites::Site& site;
  SiteGradients& gradients;
  SiteFolder* folder;  ///< folder of the state; null: it keeps none
};

}  // namespace sotto
