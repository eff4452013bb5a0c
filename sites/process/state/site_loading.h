// A site's beginning from its state folder: from the state that it holds, or as a new site.
//
// Thread safety: one thread at a time. Ownership: the parts of the site are the caller's.
#pragma once

#include <string>

#include <sotto/base/status.h>
#include <sotto/sites/core/site.h>
#include <sotto/sites/nodes/state/site_folder.h>
#include <sotto/sites/process/report/site_reporter.h>
#include <sotto/sites/process/site_gradients.h>
#include <sotto/sites/process/state/site_state_writer.h>

namespace sotto {

/// The parts of a site that begins.
struct LoadingSite {
  const std::string& name;      ///< the site's
  const std::string& settings;  ///< settings that sites must share (settings_text)
  SiteFolder* folder;           ///< null: it keeps no state
  sites::Site& site;
  SiteGradients& gradients;
  SiteStateWriter& writer;
  const SiteReporter& reporter;
};

/// Loads the state, if there is one, and tells which. True: the state is not what others know last,
/// and the site begins anew with its model, or with a neighbour's (Site::disown_past). Throws Error
/// for a state of another format, or of a site with other settings; a fault: it cannot be read.
Result<bool> load_site(const LoadingSite& parts);

}  // namespace sotto
