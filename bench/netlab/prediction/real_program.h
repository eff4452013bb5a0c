// The real program, as all that runs it on an emulated network is given it. Plain data.
#pragma once

#include <atomic>
#include <functional>
#include <string>

namespace sotto::netlab {

/// The `sotto` that runs, what stops its runs, and who hears of them.
struct RealProgram {
  std::string path;                                  ///< where `sotto` lies
  const std::atomic<bool>* stop = nullptr;           ///< ends a run when it becomes true; not null
  std::function<void(const std::string&)> say = {};  ///< hears what is done next, if it is there
};

}  // namespace sotto::netlab
