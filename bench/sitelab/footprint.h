// What a process takes of the machine. Thread-safe.
#pragma once

#include <sys/types.h>

#include <optional>

namespace sotto::sitelab {

/// What a process takes of the machine.
struct Footprint {
  double resident_bytes = 0;
  double descriptors = 0;
};

/// What the process takes; none when it has ended.
std::optional<Footprint> footprint_of(pid_t process);

}  // namespace sotto::sitelab
