// What all ZeroMQ sockets here have in common: their settings, and operations that never wait.
//
// Thread safety: as the socket's, one thread. Ownership: none.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <zmq.hpp>

#include <sotto/base/bytes.h>

namespace sotto::internal {

/// What CURVE adds to a message.
inline constexpr std::size_t kCurveBytes = 33;

/// Descriptors of a socket with a connection: where it is called, the connection, and one that is
/// made while another one closes.
constexpr std::size_t kDescriptorsOfSocket = 3;

/// A context for sockets that open `descriptors` files together. Throws Shortage where the system
/// would not give it these, or its threads, now: ZeroMQ itself opens and starts them with the first
/// socket, and aborts the process where it gets none.
zmq::context_t new_context(std::size_t descriptors);

/// What every socket sets that meets the network: bounded messages, no lingering, dead hosts
/// noticed.
void set_common_options(zmq::socket_t& socket, const std::string& endpoint,
                        std::size_t max_message_bytes);

/// Lets the socket bind with a descriptor that listens already, which it takes over. Throws
/// zmq::error_t.
void use_descriptor(zmq::socket_t& socket, int listening);

/// Sends or receives without waiting; false when the socket is not ready or a signal came between.
bool try_send(zmq::socket_t& socket, zmq::message_t& message,
              zmq::send_flags flags = zmq::send_flags::none);
bool try_receive(zmq::socket_t& socket, zmq::message_t& message);

/// A message's bytes, to be read, and from their first on to be written.
inline std::span<const std::byte> view_of(const zmq::message_t& message) {
  return {static_cast<const std::byte*>(message.data()), message.size()};
}
inline ByteWriter writer_of(zmq::message_t& message) {
  return ByteWriter({static_cast<std::byte*>(message.data()), message.size()});
}

/// True when a message would be taken now.
bool writable(zmq::socket_t& socket);

}  // namespace sotto::internal
