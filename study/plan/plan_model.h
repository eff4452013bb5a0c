// How long the rounds of a job take, by an α–β model: the planner's own cheap screen, which the
// simulator then checks. Pure functions; not thread-safe.
//
// Each link ℓ, hosts' ways out and in among them, works through the frames that cross it in the
// order in which they were posted, with its bandwidth β: a frame f of b bytes that is posted at P
// is through at
//
//   E_ℓ(f) = max(E_ℓ(the one before), P) + b / β_ℓ
//
// where frames that a node posts at once end at once, and it arrives at
//
//   A(f) = Σ_ℓ L_ℓ + max(P + b / r, max_ℓ E_ℓ(f))
//
// L: latency, drawn within its jitter; r: what TCP keeps where packets are lost (mean_rate in
// mean_rate.h, with twice the latency as the round trip), and less while a connection's window
// is small (congestion_window.h). Of a frame that stands for several buckets the first is there
// after its share of the bytes, and is decoded while the others are on their way. β and L are those
// that the protocol leaves (NetworkModel). Over a transport that sends on demand, P is not before
// the receiver's word of its own post has come. A node posts when its first bucket is encoded, and
// what hides behind a gradient is waited for as far as that bucket; the next gradient is of all of
// them. Where exchanges follow each other (all-reduce), each bucket goes on to its next once it has
// been decoded. A node encodes and decodes one at a time. Its exchange is over when its frames are
// there and decoded, and what it sent and is larger than a socket's buffer has arrived; smaller
// frames are handed over while the peer has room for them (Peers::frames_ahead), of which word
// comes back a latency after the arrival of the frame that had it.
// Nodes' clocks then advance round by round by the rules of sim/simulator.h: gradient, encoding,
// exchanges that hide behind gradients or do not.
//
// What the model leaves out: that frames which are under way together share a link, rather than
// have it in turn; that a frame's way through one link can be slowed down by another; packets,
// which take turns; shares by round-trip time; a window that does not open; events.
#pragma once

#include <cstdint>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sim/network/platform.h>
#include <sotto/sim/simulator_options.h>
#include <sotto/study/plan/planned_job.h>

namespace sotto::study {

/// How quick the nodes and the protocol between them are.
struct JobTiming {
  std::vector<NodeSpec> nodes;  ///< nodes by rank
  bool overlap = true;          ///< exchanges hide behind gradients where the algorithm allows it
  std::uint64_t seed = 0;       ///< seed of compute times, drawn as the simulator does, and jitter
  NetworkModel network = {};    ///< effect of the protocol on the platform's bandwidths
  TransportModel transport = {};
};

/// Seconds that a round takes, in the mean over `rounds` of them. Throws Error for a frame between
/// nodes that the platform does not connect.
double predict_seconds_per_round(const PlannedJob& job, const Platform& platform,
                                 const JobTiming& timing, Round rounds);

}  // namespace sotto::study
