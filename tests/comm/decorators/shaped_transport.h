// A transport made slow: what a wide-area link would do to each frame, in user space and without
// privileges.
//
// A frame occupies the node's uplink, which all its out-edges share, and its edge for bytes divided
// by the bandwidth, one frame after another, and comes out a latency later; only then is it handed
// to the inner transport. An exchange is done when its last frame has come out, so a sender notices
// the latency as well; between nodes that wait for each other this makes no difference. Loopback
// under this decorator behaves like the α–β model of a network: time = latency + bytes / bandwidth.
//
// Thread safety and ownership: as Transport; owns the inner transport. Frames move while somebody
// polls.
#pragma once

#include <chrono>
#include <map>
#include <memory>

#include <sotto/comm/transport.h>

namespace sotto::test {

/// One direction of one edge.
struct LinkShape {
  /// 0 does not limit.
  double bytes_per_second = 0;
  Deadline::Clock::duration latency{};
};

/// What the emulated network does to frames.
struct NetworkShape {
  /// Shared by all out-edges of the node, as a network card is; 0 does not limit.
  double uplink_bytes_per_second = 0;
  /// Every out-edge that has no shape of its own.
  LinkShape edge;
  std::map<Rank, LinkShape> edge_to;
};

/// Throws Error for a negative or non-finite bandwidth or a negative latency.
std::unique_ptr<Transport> make_shaped_transport(std::unique_ptr<Transport> inner,
                                                 const NetworkShape& shape);

}  // namespace sotto::test
