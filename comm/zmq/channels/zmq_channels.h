// The constructor of the channels over ZeroMQ, for channels.cc, which has checked the options.
#pragma once

#include <memory>

#include <sotto/comm/channels.h>

namespace sotto::internal {

Result<std::unique_ptr<Channels>> make_zmq_channels(const ChannelOptions& options);

}  // namespace sotto::internal
