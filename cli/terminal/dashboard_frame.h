// What the dashboard of a training run shows, as lines of text. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <sotto/trainers/observer.h>
#include <sotto/trainers/result.h>

#include "series.h"
#include "terminal.h"

namespace sotto::cli {

struct DashboardState {
  std::string title;
  RunStart start;
  Round done = 0;
  double elapsed_s = 0;  ///< since the run began
  std::optional<RunEvaluation> last;
  std::optional<RunEvaluation> before;  ///< the evaluation before
  Series loss;
  Series quality;  ///< accuracy, or R² of a regression
  Series consensus;
};

/// The lines, none longer than the terminal is wide, and fewer than it is high: title and progress,
/// curves, then a row for each node beside one for each link, as many as fit.
std::vector<std::string> dashboard_lines(const DashboardState& state, const TerminalSize& size);

}  // namespace sotto::cli
