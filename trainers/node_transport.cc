#include <sotto/trainers/node_transport.h>

namespace sotto {

TransportOptions transport_options(const Peers& peers, Rank rank, int nodes) {
  TransportOptions options;
  options.rank = rank;
  options.nodes = nodes;
  options.to = peers.to;
  options.from = peers.from;
  options.max_frame_bytes = peers.max_frame_bytes;
  options.frames_ahead = peers.frames_ahead();
  return options;
}

}  // namespace sotto
