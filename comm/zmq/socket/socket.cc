#include "socket.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include <sotto/base/start_threads.h>
#include <sotto/base/system_limit.h>

namespace sotto::internal {
namespace {

/// Runs a socket operation; a signal that comes between counts as "not now".
template <typename Operation>
bool attempt(Operation operation) {
  try {
    return operation();
  } catch (const zmq::error_t& error) {
    if (error.num() != EINTR) {
      throw;
    }
    return false;
  }
}

/// A context's own: one for input and output, and one that closes sockets.
constexpr std::size_t kContextThreads = 2;
/// A context's own: what its threads wait with, and where they are called.
constexpr std::size_t kContextDescriptors = 6;

}  // namespace

zmq::context_t new_context(std::size_t descriptors) {
  require_open_files(kContextDescriptors + descriptors, "ZeroMQ");
  run_side_by_side(kContextThreads, "ZeroMQ", [](std::size_t) {});
  return zmq::context_t();
}

void set_common_options(zmq::socket_t& socket, const std::string& endpoint,
                        std::size_t max_message_bytes) {
  socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(max_message_bytes));
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::handshake_ivl, 5000);
  socket.set(zmq::sockopt::ipv6, endpoint.find('[') != std::string::npos ? 1 : 0);
  // The kernel's keep-alive finds dead hosts. ZeroMQ's heartbeats would also cut off live ones that
  // take longer than the heartbeat for a message on a slow link.
  socket.set(zmq::sockopt::tcp_keepalive, 1);
  socket.set(zmq::sockopt::tcp_keepalive_idle, 10);
  socket.set(zmq::sockopt::tcp_keepalive_intvl, 5);
  socket.set(zmq::sockopt::tcp_keepalive_cnt, 3);
}

void use_descriptor(zmq::socket_t& socket, int listening) {
  if (zmq_setsockopt(socket.handle(), ZMQ_USE_FD, &listening, sizeof listening) != 0) {
    const int error = errno;
    ::close(listening);
    errno = error;
    throw zmq::error_t();
  }
}

bool try_send(zmq::socket_t& socket, zmq::message_t& message, zmq::send_flags flags) {
  return attempt(
      [&] { return socket.send(message, flags | zmq::send_flags::dontwait).has_value(); });
}

bool try_receive(zmq::socket_t& socket, zmq::message_t& message) {
  return attempt([&] { return socket.recv(message, zmq::recv_flags::dontwait).has_value(); });
}

bool writable(zmq::socket_t& socket) {
  return attempt([&] { return (socket.get(zmq::sockopt::events) & ZMQ_POLLOUT) != 0; });
}

}  // namespace sotto::internal
