// A site's event as JSON, as the log and the audit file have it. A pure function; thread-safe.
#pragma once

#include <nlohmann/json.hpp>

#include <sotto/sites/nodes/report/site_report.h>

namespace sotto {

/// {"time":"2026-11-21T12:00:00.000Z","level":"warning","event":"peer-down","peer":"bank",
/// "round":7,"text":"…"}, with the figures of the text under their names. `time` in seconds since
/// 1970.
nlohmann::ordered_json event_json(const SiteEvent& event, double time);

/// "2026-11-21T12:00:00.000Z" for a time in seconds since 1970.
std::string utc_text(double time);

/// "info", "warning" or "error".
std::string_view level_name(SiteEvent::Level level);

}  // namespace sotto
