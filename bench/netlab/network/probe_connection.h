// A TCP connection between two hosts of the emulated network. Every wait has a deadline.
#pragma once

#include <optional>

#include <sotto/base/file_descriptor.h>

#include "emulated_network.h"

namespace sotto::netlab {

/// A connection from one host to another; both ends in this process.
struct ProbeConnection {
  FileDescriptor sender;
  FileDescriptor receiver;
};

/// Nothing where it is not there in time. Sends and receives take no longer either.
std::optional<ProbeConnection> connect_hosts(const EmulatedNetwork& network, Host from, Host to,
                                             double patience_s);

}  // namespace sotto::netlab
