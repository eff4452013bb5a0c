// How a site stands, as JSON: what its monitor's /status shows. Pure function; thread-safe.
#pragma once

#include <sotto/base/json.h>
#include <sotto/sites/nodes/report/site_report.h>

namespace sotto {

/// The report with all its peers; fields and units are in docs/operations.md.
Json site_status_json(const SiteReport& report);

}  // namespace sotto
