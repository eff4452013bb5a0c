// Bars with ranges as an SVG file. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "bench/netlab/contest/contender_result.h"

namespace sotto::netlab {

struct BarGroup {
  std::string name;
  std::vector<bench::MedianSpread> bars;  ///< a bar of each series; NaN: none
};

struct BarPlot {
  std::string title;
  std::vector<std::string> series = {};
  std::vector<BarGroup> groups = {};
};

/// A group a row, from the top; the axis of values is logarithmic, with a line at 1.
std::string draw_bars(const BarPlot& plot);

}  // namespace sotto::netlab
