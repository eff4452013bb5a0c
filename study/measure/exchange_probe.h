// Measures the links between the nodes of a job, over the transports that training uses.
//
// All nodes do the same steps in the same order: first each directed edge alone, then each node
// with all its edges at once. In a step one node asks, its peers answer, and all wait for the
// result that it publishes in the store. Every wait has a deadline.
//
// Thread safety: one thread a node. Transport and collectives are the caller's.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/comm/transport.h>
#include <sotto/trainers/meetings/store_collectives.h>

namespace sotto::study {

/// A measured link from one node to another.
struct MeasuredEdge {
  Rank from = 0;
  Rank to = 0;
  double latency_s = 0;  ///< half the median round trip of small messages, equal in both directions
  double bandwidth_bytes_per_s = 0;
  std::uint64_t bytes = 0;  ///< payload of the message that measured the bandwidth
};

/// The measured bandwidth of a node's own connection, with all its edges busy at once; 0 where it
/// has none.
struct MeasuredHost {
  double up_bytes_per_s = 0;
  double down_bytes_per_s = 0;
};

/// The measurements between all nodes.
struct MeasuredNetwork {
  std::vector<MeasuredEdge> edges;  ///< sorted by (from, to)
  std::vector<MeasuredHost> hosts;  ///< measured connections, by rank
};

/// The node that measures, its peers, and the sizes and times of a measurement.
struct ProbeOptions {
  Rank rank = 0;
  int nodes = 1;
  std::vector<std::pair<Rank, Rank>> edges;  ///< (from, to), sorted
  double seconds = 1;                        ///< approximate duration of each step
  std::size_t most_bytes = 0;                ///< largest payload of a message
  std::chrono::milliseconds timeout{30'000};
  StopRequest stop{};  ///< true ends every wait
};

/// The peers that `rank` must be connected with, both ways since answers come back.
std::vector<Rank> probe_peers(const ProbeOptions& options);
/// Bytes of a frame that a probe sends.
std::size_t probe_frame_bytes(const ProbeOptions& options);

/// All that was measured, on every node. A fault names the peer.
Result<MeasuredNetwork> probe(const ProbeOptions& options, Transport& transport,
                              StoreCollectives& collectives, Store& store);

}  // namespace sotto::study
