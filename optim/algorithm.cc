#include <sotto/optim/algorithm.h>

#include <algorithm>

namespace sotto {

std::size_t Peers::frames_ahead() const {
  constexpr std::size_t kBytes = std::size_t{32} << 20U;
  constexpr std::size_t kFrames = 256;
  const std::size_t held = max_frame_bytes == 0 ? kFrames : kBytes / max_frame_bytes;
  return std::max(2 * frames_a_round, std::min(held, kFrames));
}

void AlgorithmCounters::add(const AlgorithmCounters& more) {
  saturated += more.saturated;
  bad_frames += more.bad_frames;
  drifted += more.drifted;
  staleness += more.staleness;
  most_stale = std::max(most_stale, more.most_stale);
  set_aside += more.set_aside;
  other_settings += more.other_settings;
}

Status Algorithm::take_direction(const Direction& /*d*/) {
  return {Fault::unexpected, "this algorithm does not take directions"};
}

Status Algorithm::step_ahead(const Direction& /*d*/, std::span<float> /*stepped*/) {
  return {Fault::unexpected, "this algorithm does not step before it mixes"};
}

Status Algorithm::gradient_part(std::size_t /*first*/, std::span<const float> /*part*/) {
  return {Fault::unexpected, "this algorithm takes gradients whole"};
}

}  // namespace sotto
