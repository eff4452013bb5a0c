// The results of several runs as one self-contained HTML page with curves. Not thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sotto/console/plot.h>

#include "compare_report.h"
#include "repeated_run.h"

namespace sotto::cli {

/// A figure of one point of a run's history; NaN where it has none.
using PointFigure = std::function<double(const study::FinishedRun& run, std::size_t point)>;
/// One that each point has itself.
PointFigure point_figure(double HistoryPoint::*figure);
/// The number of the round.
double round_of(const study::FinishedRun& run, std::size_t point);

/// What curves are drawn against.
struct PageAxis {
  PointFigure figure;
  std::string label;
  bool logarithmic = false;
  std::vector<console::PlotMark> marks = {};
};

/// What runs are to reach, drawn as a line.
struct PageTarget {
  std::optional<double> loss = std::nullopt;
  std::optional<double> quality = std::nullopt;  ///< accuracy, or R² of a regression
};

// The parts of a page about runs, of which one at least has a result.

/// The head, and a line about the first run that has a result.
std::string page_head(const std::string& head, const std::vector<study::RepeatedRun>& runs);
std::string draw_tables(const std::vector<ComparisonTable>& tables);
/// Loss, and accuracy or R², against each axis; with several seeds the means, in bands from the
/// lowest to the highest.
std::string draw_curves(const std::vector<study::RepeatedRun>& runs,
                        const std::vector<PageAxis>& axes, const PageTarget& target = {});

/// The page of `sotto compare`: against rounds, bytes and time.
std::string compare_page(const std::vector<study::RepeatedRun>& runs,
                         const std::vector<ComparisonTable>& tables);

}  // namespace sotto::cli
