// The processes of one contender's job, from their start to their end. They die with the thread
// that waits for them. One thread at a time.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include <sotto/base/status.h>

#include "testbed.h"

namespace sotto::netlab {

/// A process of a job.
struct Process {
  Host host = 0;                   ///< the host on which it runs
  std::vector<std::string> words;  ///< a path and its arguments
  std::map<std::string, std::string>
      variables;  ///< variables of its environment, as Child takes them
};

/// What a job left.
struct JobEnd {
  std::string output;         ///< what the first process printed
  std::uint64_t carried = 0;  ///< bytes on the wire of all hosts since that process printed "warm"
};

/// Ends when all processes have. A process that fails ends the others, and the fault is what it
/// said; so do `stop`, and `patience_s` without an end.
Result<JobEnd> run_job(const Testbed& testbed, const std::vector<Process>& processes,
                       double patience_s, const std::atomic<bool>& stop);

/// What a failed program has to say for itself: the last line that is more than punctuation.
std::string last_line(const std::string& text);

}  // namespace sotto::netlab
