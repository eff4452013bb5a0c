// Timelines as inline SVG, for pages with the style of page.h. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include <sotto/console/plot.h>
#include <sotto/study/simulation/timeline.h>

namespace sotto::cli {

/// The whole run: which share of the nodes was in which phase, over virtual time up to `end`.
std::string draw_shares(const study::Timeline& timeline, SimTime end,
                        const std::vector<console::PlotMark>& marks);

/// A window: a row for each node that is shown.
std::string draw_rows(const study::Timeline& timeline, const study::TimelineWindow& window,
                      const std::vector<console::PlotMark>& marks);

/// What the colours mean: a line of HTML.
std::string phase_keys();

}  // namespace sotto::cli
