#include "progress.h"

#include <unistd.h>

#include <optional>

#include <fmt/format.h>

#include <sotto/base/error.h>

#include "dashboard.h"

namespace sotto::cli {

Progress bar_alone(bool quiet) { return {.bar = !quiet && ::isatty(STDERR_FILENO) == 1}; }

Progress choose_progress(const std::string& name, bool quiet) {
  const auto terminal = terminal_behind(STDERR_FILENO);
  const bool room = terminal && terminal->columns >= Dashboard::kLeastColumns &&
                    terminal->rows >= Dashboard::kLeastRows;
  // Lines on the terminal that shows the dashboard would tear it apart.
  const bool shared = ::isatty(STDOUT_FILENO) == 1;
  Progress chosen;
  if (name == "auto") {
    chosen = room ? Progress{.lines = !shared, .dashboard = true} : bar_alone(false);
    chosen.lines = chosen.lines || !room;
  } else if (name == "plain") {
    chosen = {.lines = true};
  } else if (name == "bar") {
    chosen = bar_alone(false);
    chosen.lines = true;
  } else if (name == "dashboard") {
    if (!room) {
      refuse("--progress", name,
             fmt::format("standard error is no terminal of {} columns and {} rows",
                         Dashboard::kLeastColumns, Dashboard::kLeastRows));
    }
    chosen = {.lines = !shared, .dashboard = true};
  } else if (name != "none") {
    refuse("--progress", name, "it is auto, plain, bar, dashboard or none");
  }
  return quiet ? Progress() : chosen;
}

}  // namespace sotto::cli
