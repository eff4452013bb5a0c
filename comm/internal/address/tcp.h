// Plain TCP at endpoints as ZeroMQ writes them, "tcp://ADDRESS:PORT" with numbers only.
// Thread-safe.
#pragma once

#include <netdb.h>

#include <memory>
#include <string_view>

#include <sotto/base/file_descriptor.h>
#include <sotto/comm/deadline.h>

namespace sotto::internal {

using NumericAddress = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// The address to bind or connect to; port "*" is 0. Null for what is no such endpoint.
NumericAddress numeric_address(std::string_view endpoint);

/// Waits for poll's `events` of a descriptor, or for its failure; false when the deadline came
/// first.
bool await_ready(int descriptor, short events, Deadline deadline);

/// A connected socket that does not block; none when nobody takes the connection by the deadline.
FileDescriptor connect_by(std::string_view endpoint, Deadline deadline);

}  // namespace sotto::internal
