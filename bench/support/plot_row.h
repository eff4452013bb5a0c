// Plots side by side above one key. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

namespace sotto::bench {

/// An SVG with the plots (console::draw_plot) in a row, and below them the names of their curves,
/// which all of them have in this order.
std::string plot_row(const std::vector<std::string>& plots, const std::vector<std::string>& names);

}  // namespace sotto::bench
