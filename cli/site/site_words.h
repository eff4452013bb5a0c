// A site's report as a table. A pure function; thread-safe.
#pragma once

#include <sotto/console/output.h>
#include <sotto/observe/site_status.h>

namespace sotto::cli {

/// Prints what site_status_json made, as an operator reads it; `now` in seconds since 1970.
/// Throws Json::exception for other JSON.
void print_site(const console::Output& output, const Json& status, double now);

}  // namespace sotto::cli
