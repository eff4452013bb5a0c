// A site's report as a table, and the pages of its monitor. Pure functions;
// thread-safe.
#pragma once

#include <vector>

#include <sotto/console/output.h>
#include <sotto/observe/monitor.h>
#include <sotto/sites/process/site_report.h>

namespace sotto::cli {

/// What a site's monitor shows: /metrics and /status, of `board`, which must outlive it.
std::vector<MonitorPage> site_pages(const SiteBoard& board);

/// Prints what study::site_status_json made, as an operator reads it; `now` in seconds since 1970.
/// Throws Json::exception for other JSON.
void print_site(const console::Output& output, const Json& status, double now);

}  // namespace sotto::cli
