// The terminal that a descriptor leads to. Thread-safe.
#pragma once

#include <optional>

namespace sotto::cli {

/// How much room there is.
struct TerminalSize {
  int columns = 80;
  int rows = 24;
};

/// The terminal behind a descriptor, as large as it is now; nothing when there is none, or one that
/// cannot move its cursor (TERM unset or dumb).
std::optional<TerminalSize> terminal_behind(int descriptor);

}  // namespace sotto::cli
