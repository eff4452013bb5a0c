// The parts of a self-contained HTML page about several runs: tables, and curves of their
// histories. Not thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sotto/console/plot.h>

#include "repeated_run.h"
#include "run_table.h"

namespace sotto::cli {

/// A figure of one point of a run's history; NaN where the point has none.
using PointFigure = std::function<double(const study::FinishedRun& run, std::size_t point)>;
/// The figure that each point has in this field.
PointFigure point_figure(double HistoryPoint::*figure);
/// The number of the round.
double round_of(const study::FinishedRun& run, std::size_t point);

/// The figure against which curves are drawn.
struct PageAxis {
  PointFigure figure;
  std::string label;
  bool logarithmic = false;
  std::vector<console::PlotMark> marks = {};
};

/// The quality that runs are to reach, drawn as a line.
struct PageTarget {
  std::optional<double> loss = std::nullopt;
  std::optional<double> quality = std::nullopt;  ///< accuracy, or R² of a regression
};

// At least one of `runs` has a result.

/// The first run that has a result, in its first seed.
const study::FinishedRun& first_result(const std::vector<study::RepeatedRun>& runs);
/// The head, and a line about that run.
std::string page_head(const std::string& head, const std::vector<study::RepeatedRun>& runs);
/// The tables with their notes, each row in its curve's colour.
std::string draw_tables(const std::vector<RunTable>& tables);
/// Loss, and accuracy or R², against each axis; with several seeds the means, in bands from the
/// lowest to the highest.
std::string draw_curves(const std::vector<study::RepeatedRun>& runs,
                        const std::vector<PageAxis>& axes, const PageTarget& target = {});

}  // namespace sotto::cli
