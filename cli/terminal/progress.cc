#include "progress.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/error.h>

#include "dashboard.h"
#include "terminal.h"

namespace sotto::cli {
namespace {

constexpr std::array<std::string_view, 5> kProgressWays = {"auto", "plain", "bar", "dashboard",
                                                           "none"};

}  // namespace

Progress bar_alone(bool quiet) {
  return {.bar = !quiet && terminal_behind(STDERR_FILENO).has_value()};
}

Progress choose_progress(const std::string& name, bool quiet) {
  if (std::find(kProgressWays.begin(), kProgressWays.end(), name) == kProgressWays.end()) {
    refuse("progress", name, "it is auto, plain, bar, dashboard or none");
  }
  if (quiet) {
    return {};  // whatever room there is: the nodes of a launched job are given the same words
  }
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
      refuse("progress", name,
             fmt::format("standard error is no terminal of {} columns and {} rows",
                         Dashboard::kLeastColumns, Dashboard::kLeastRows));
    }
    chosen = {.lines = !shared, .dashboard = true};
  }
  return chosen;
}

}  // namespace sotto::cli
