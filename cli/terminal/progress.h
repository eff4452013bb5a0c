// How a run shows that it goes on. Plain values.
#pragma once

#include <string>

namespace sotto::cli {

struct Progress {
  bool lines = false;      ///< a line of standard output for each evaluation
  bool bar = false;        ///< a bar on standard error
  bool dashboard = false;  ///< dashboard.h
};

/// What --progress asks for on the terminals that there are: auto, plain, bar, dashboard or none.
/// `quiet`: this node shows nothing. Throws Error for another word, and where something is to be
/// shown, for a dashboard that has no room.
Progress choose_progress(const std::string& name, bool quiet);

/// A bar, where standard error is a terminal.
Progress bar_alone(bool quiet);

}  // namespace sotto::cli
