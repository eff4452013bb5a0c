// A transport with faults on purpose: frames that are lost, damaged or late, and a node that dies,
// all decided by a seed, so that a failure can be repeated.
//
// Faults strike the frames that this node sends. What befalls a frame is a function of (seed, rank,
// round, phase, bucket, peer) alone.
//
// Thread safety and ownership: as Transport; owns the inner transport. Late frames move while
// somebody polls.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include <sotto/comm/transport.h>

namespace sotto::test {

/// What happens to the frames of a node, each by itself.
struct FrameFaults {
  std::uint64_t seed = 0;
  /// Probability that a frame never leaves; its sender does not notice.
  double drop = 0;
  /// Probability that one bit of a frame is flipped.
  double damage = 0;
  /// Probability that a frame is late, by up to `delay_max`.
  double delay = 0;
  Deadline::Clock::duration delay_max = std::chrono::milliseconds(10);
  /// From this round on the node is dead: its connections close, and post and poll give Fault::io.
  std::optional<Round> die_at{};
};

/// `rank` is the node's own. Throws Error for a probability outside 0 … 1 or a negative delay.
std::unique_ptr<Transport> make_faulty_transport(std::unique_ptr<Transport> inner, Rank rank,
                                                 const FrameFaults& plan);

}  // namespace sotto::test
