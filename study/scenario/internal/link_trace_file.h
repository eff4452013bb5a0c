// Files with the bandwidth of a link over time (docs/traces.md): Mahimahi's, and CSV. Throws Error
// that names file and line of what is wrong. Pure functions.
#pragma once

#include <optional>
#include <string>

#include <sotto/sim/network/link_trace.h>
#include <sotto/sim/time.h>

namespace sotto::study {

/// How a file is read.
struct LinkTraceFile {
  std::string path;
  /// For CSV: period after which the trace repeats; none: its last line's figures stay.
  std::optional<SimTime> repeat = {};
  /// For Mahimahi: length of the bins in which packets are counted; none: 100 ms.
  std::optional<SimTime> bin = {};
};

/// The trace that the file holds: Mahimahi's where the first line is a number, else CSV.
LinkTrace read_link_trace(const LinkTraceFile& file);

}  // namespace sotto::study
