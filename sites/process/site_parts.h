// What a running site is made of, for its other objects: what it was told to do, its folder, the
// Site itself, and what leaves of its gradients. Not for users.
//
// Thread safety: one thread at a time. Ownership: the parameters are the caller's and must outlive
// it.
#pragma once

#include <memory>
#include <span>
#include <string>

#include <sotto/base/parameter_layout.h>
#include <sotto/sites/core/site.h>
#include <sotto/sites/nodes/state/site_folder.h>
#include <sotto/sites/process/site_gradients.h>
#include <sotto/sites/process/site_options.h>

namespace sotto {

struct SiteParts {
  /// A site that begins at `parameters`, in a process of its own. `state` is null where it keeps
  /// none. Throws Error for options that are refused, with this folder or without.
  SiteParts(const SiteOptions& given, std::unique_ptr<SiteFolder> state,
            std::span<float> parameters, const ParameterLayout& tensors);
  SiteParts(const SiteParts&) = delete;
  SiteParts& operator=(const SiteParts&) = delete;

  const SiteOptions options;                 ///< options, and what the run sets
  const ParameterLayout layout;              ///< tensors of the parameters
  const std::unique_ptr<SiteFolder> folder;  ///< folder of the state; null: it keeps none
  SiteGradients gradients;
  const std::string settings;  ///< settings that sites must share, in words (settings_text)
  sites::Site site;
};

}  // namespace sotto
