// The constructors of the transports, for the table in transport.cc, and of the channels, for
// channels.cc; and what the transports share.
//
// Options have been checked when these are called. Each throws Error for a setting
// that only it refuses, and returns a fault when a peer does not come in time.
#pragma once

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <vector>

#include <sotto/comm/channels.h>
#include <sotto/comm/transport.h>

namespace sotto::internal {

/// `to` and `from` merged, sorted, each once. Here, for programs with one transport alone
/// (tests/gpu).
inline std::vector<Rank> neighbours(const TransportOptions& options) {
  std::vector<Rank> all;
  std::ranges::set_union(options.to, options.from, std::back_inserter(all));
  return all;
}

/// By when a transport that closes leaves what its peers have not taken. Once a stop is requested
/// there is time for those that are there alone.
inline Deadline closing_deadline(const TransportOptions& options) {
  constexpr Deadline::Clock::duration kHurry = std::chrono::milliseconds(250);
  const bool hurry = options.stop && options.stop();
  return hurry ? Deadline::after(std::min(kHurry, options.close_timeout))
               : Deadline::after(options.close_timeout, &options.stop);
}

/// Throws Error unless the list of peers lets every neighbour of `options` do what the graph asks
/// of it, and agrees with the node's own key and rank. Requires security.
void check_trust(const TransportOptions& options);

Result<std::unique_ptr<Transport>> make_inproc_transport(const TransportOptions& options);
Result<std::unique_ptr<Transport>> make_gloo_transport(const TransportOptions& options);
Result<std::unique_ptr<Transport>> make_zmq_transport(const TransportOptions& options);
/// Fault::io when there is no device.
Result<std::unique_ptr<Transport>> make_nccl_transport(const TransportOptions& options);

Result<std::unique_ptr<Channels>> make_zmq_channels(const ChannelOptions& options);

}  // namespace sotto::internal
