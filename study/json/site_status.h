// How a site stands, as JSON: what its monitor's /status shows. Pure function; thread-safe.
#pragma once

#include <sotto/sites/process/site_report.h>
#include <sotto/study/json/figures.h>

namespace sotto::study {

/// The report with all its peers; fields and units are in docs/operations.md.
Json site_status_json(const SiteReport& report);

}  // namespace sotto::study
