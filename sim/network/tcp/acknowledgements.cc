#include <sotto/sim/network/tcp/acknowledgements.h>

#include <algorithm>
#include <cmath>

namespace sotto {
namespace {

/// Shortest pause between two looks where nothing moves.
constexpr SimTime kLeastPause = 1'000'000;

}  // namespace

SimTime Acknowledgements::advance(const ReverseStream& reverse, SimTime round_trip) {
  if (stage_ == Stage::awaited) {
    stage_ = Stage::queues;
    leaves_after_ = reverse.sent + reverse.queued;
  }
  const double ahead = leaves_after_ - reverse.sent;
  if (!reverse.flowing || ahead < 0.5) {
    stage_ = Stage::returns;
    return 0;
  }
  if (reverse.bytes_per_s > 0) {
    return from_seconds(std::ceil(1e9 * ahead / reverse.bytes_per_s) * 1e-9);
  }
  return std::max(round_trip, kLeastPause);
}

}  // namespace sotto
