// The words for runs that a signal kept from their end. Thread-safe.
#pragma once

namespace sotto::study {

/// Ctrl-C ended the run.
inline constexpr const char* kInterrupted = "interrupted";
/// The run did not begin, as another one was interrupted.
inline constexpr const char* kNotRun = "not run";

}  // namespace sotto::study
