// The constructors of the transports, for the table in transport.cc, and of the channels, for
// channels.cc.
//
// Options have been checked when these are called. Each throws Error for a setting
// that only it refuses, and returns a fault when a peer does not come in time.
#pragma once

#include <memory>

#include <sotto/comm/channels.h>
#include <sotto/comm/transport.h>

namespace sotto::internal {

Result<std::unique_ptr<Transport>> make_inproc_transport(const TransportOptions& options);
Result<std::unique_ptr<Transport>> make_gloo_transport(const TransportOptions& options);
Result<std::unique_ptr<Transport>> make_zmq_transport(const TransportOptions& options);
/// Fault::io when there is no device.
Result<std::unique_ptr<Transport>> make_nccl_transport(const TransportOptions& options);

Result<std::unique_ptr<Channels>> make_zmq_channels(const ChannelOptions& options);

}  // namespace sotto::internal
