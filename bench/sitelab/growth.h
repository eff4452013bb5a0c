// Whether what the processes of a long run take of the machine stays as it is: memory and
// descriptors, late in the run against early in it. One thread at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "footprint.h"

namespace sotto::sitelab {

/// Means over all processes that have run for a while.
struct Growth {
  std::size_t samples = 0;
  Footprint early;    ///< the median in the first third of the run
  Footprint late;     ///< the median in the last third
  Footprint largest;  ///< the largest figures of any process, each on its own
  /// None: it cannot be told, as the run is too short.
  std::optional<bool> flat;
};

class Footprints {
 public:
  /// Processes younger than this, in seconds, are still filling their buffers.
  static constexpr double kSettled = 5;

  void add(double run_s, double age_s, const Footprint& taken);
  /// Judges only what is `steady`: where sites come for good, or go, each has more or fewer peers.
  Growth growth(bool steady) const;

 private:
  struct Sample {
    double run_s = 0;
    Footprint taken;
  };
  std::vector<Sample> samples_;
};

}  // namespace sotto::sitelab
