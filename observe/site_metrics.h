// A site's report for Prometheus. A pure function; thread-safe.
#pragma once

#include <string>

#include <sotto/sites/nodes/report/site_report.h>

namespace sotto {

/// prometheus.io/docs/instrumenting/exposition_formats, version 0.0.4; `now` in seconds since 1970.
std::string site_metrics(const SiteReport& report, double now);

}  // namespace sotto
