#include <sotto/sim/network/tcp/mean_rate.h>

#include <algorithm>
#include <cmath>

#include <sotto/sim/network/tcp/round_trip_estimate.h>

namespace sotto {

double mean_rate(double loss, double round_trip_s, double segment_bytes) {
  const double timeout_s = round_trip_s + to_seconds(kTimeoutMargin);
  const double windows = round_trip_s * std::sqrt(2 * loss / 3);
  const double timeouts =
      timeout_s * std::min(1.0, 3 * std::sqrt(3 * loss / 8)) * loss * (1 + 32 * loss * loss);
  return segment_bytes / (windows + timeouts);
}

}  // namespace sotto
