// What a site's process came to, as JSON. A pure function; thread-safe.
#pragma once

#include <sotto/console/output.h>
#include <sotto/sites/nodes/report/site_result.h>

namespace sotto::cli {

/// The result with all settings as used, `config`.
Json site_result_json(const SiteResult& result, const Json& config);

}  // namespace sotto::cli
