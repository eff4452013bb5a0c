// Events of a site, or of a node of a run whose nodes come and go, for a program without a log of
// its own.
#pragma once

#include <cstdio>

#include <sotto/sites/nodes/report/site_event.h>

namespace sotto {

/// A listener that writes each event of this level or above as a line, and flushes it:
///   2026-11-21T12:00:00.000Z warning peer-refused bank: the sites differ: lr is 0.1 here …
/// docs/operations.md says what events mean. `out` is the caller's, and outlives the listener.
SiteListener print_events(std::FILE* out, SiteEvent::Level least = SiteEvent::Level::info);

}  // namespace sotto
