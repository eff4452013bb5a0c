// A site's beginning from its state folder: from the state that it holds, or as a new site.
//
// Thread safety: one thread at a time.
#pragma once

#include <sotto/base/status.h>
#include <sotto/sites/process/report/site_reporter.h>
#include <sotto/sites/process/site_parts.h>
#include <sotto/sites/process/state/site_state_writer.h>

namespace sotto {

/// Loads the state, if there is one, and tells which. True: the state is not what others know last,
/// and the site begins anew with its model, or with a neighbour's (Site::disown_past). Throws Error
/// for a state of another format, or of a site with other settings; a fault: it cannot be read.
Result<bool> load_site(SiteParts& parts, SiteStateWriter& writer, const SiteReporter& reporter);

}  // namespace sotto
