// Checks of our own invariants. A failed check is a bug in sotto: it prints the place and aborts.
//
// Not for user input (throw Error, error.h) and not for faults of the world (Status, status.h).
// Safe from any thread.
#pragma once

#include <string_view>

namespace sotto {

/// Prints "FILE:LINE: invariant broken: WHAT" on standard error and aborts.
[[noreturn]] void broken_invariant(std::string_view what, const char* file, int line);

/// Aborts with the caller's place unless `holds`.
/// (`std::source_location` is missing from the oldest supported Clang, hence the builtins.)
inline void check(bool holds, std::string_view what, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (!holds) [[unlikely]] {
    broken_invariant(what, file, line);
  }
}

}  // namespace sotto
