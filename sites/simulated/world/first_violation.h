// The first thing that was found wrong with a simulated site, and when and with whom. One thread at
// a time.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <sotto/base/ids.h>
#include <sotto/sim/time.h>
#include <sotto/sites/simulated/simulated_sites.h>

namespace sotto::sites {

class FirstViolation {
 public:
  /// Something that happens from here on is `during`; violations carry it.
  void begin_event(SimTime time, Rank site, const char* during) {
    time_ = time;
    site_ = site;
    during_ = during;
  }
  /// Keeps the first only.
  void fail(std::string what) {
    if (!found_) {
      found_ = {.time = time_, .site = site_, .during = during_, .what = std::move(what)};
    }
  }
  const std::optional<SimulatedSiteViolation>& found() const { return found_; }

 private:
  SimTime time_ = 0;
  Rank site_ = -1;
  const char* during_ = "";
  std::optional<SimulatedSiteViolation> found_;
};

}  // namespace sotto::sites
