#include "admission_probe.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>
#include <zmq.hpp>

#include <sotto/comm/deadline.h>

#include "../../internal/address/tcp.h"
#include "authenticator.h"
#include "monitor.h"
#include "socket.h"

namespace sotto::internal {
namespace {

using namespace std::string_view_literals;

/// Far longer than a handshake on this host takes.
constexpr std::chrono::seconds kProbePatience{10};
constexpr std::size_t kGreetingBytes = 64;

enum class Answer { let_in, refused, none };

/// The answer to a CURVE client with these keys.
Answer knock(const std::string& endpoint, const KeyPair& keys, const PublicKey& server) {
  zmq::context_t context;
  zmq::socket_t socket(context, zmq::socket_type::dealer);
  set_common_options(socket, endpoint, 1024);
  socket.set(zmq::sockopt::reconnect_ivl, -1);
  set_curve_client(socket, keys, server);
  SocketMonitor monitor(context, socket, ZMQ_EVENT_ALL);
  socket.connect(endpoint);
  const auto deadline = Deadline::after(kProbePatience);
  for (;;) {
    while (const auto event = monitor.next()) {
      if (event->kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
        return Answer::let_in;
      }
      if (event->kind == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH ||
          event->kind == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL ||
          event->kind == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL ||
          event->kind == ZMQ_EVENT_DISCONNECTED || event->kind == ZMQ_EVENT_CLOSED) {
        return Answer::refused;
      }
    }
    if (deadline.expired()) {
      return Answer::none;
    }
    zmq::pollitem_t item = {monitor.socket().handle(), 0, ZMQ_POLLIN, 0};
    (void)zmq_poll(&item, 1, deadline.left_ms());
  }
}

/// The answer to a client that sends only `words`. It is let in if an answer goes beyond the
/// greeting, or the connection stays.
Answer speak(const std::string& endpoint, std::string_view words) {
  const auto deadline = Deadline::after(kProbePatience);
  const FileDescriptor socket = connect_by(endpoint, deadline);
  if (!socket) {
    return Answer::none;
  }
  (void)::send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL);
  std::size_t heard = 0;
  Answer answer = Answer::let_in;
  while (heard <= kGreetingBytes && !deadline.expired()) {
    pollfd item = {socket.get(), POLLIN, 0};
    (void)::poll(&item, 1, deadline.left_ms());
    std::array<char, 256> bytes{};
    const auto got = ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
      answer = Answer::refused;
      break;
    }
    heard += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  return answer;
}

struct PlainClient {
  std::string_view name;
  std::string words;
};

/// A greeting of ZMTP 3 with a mechanism, and the mechanism's first command.
std::string greeting(char minor, std::string_view mechanism, std::string_view command) {
  std::string words("\xff\0\0\0\0\0\0\0\0\x7f\x03"sv);
  words += minor;
  words += mechanism;
  words.append(20 - mechanism.size() + 32, '\0');
  words += command;
  return words;
}

std::array<PlainClient, 5> plain_clients() {
  constexpr auto kReady =
      "\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06"
      "DEALER"sv;
  constexpr auto kHello = "\x04\x08\x05HELLO\0\0"sv;
  return {{{"ZMTP 3.1, NULL", greeting('\1', "NULL", kReady)},
           {"ZMTP 3.0, NULL", greeting('\0', "NULL", kReady)},
           {"ZMTP 3.1, PLAIN", greeting('\1', "PLAIN", kHello)},
           {"ZMTP 2.0", std::string("\xff\0\0\0\0\0\0\0\x01\x7f\x01\x05\0\0"sv)},
           {"ZMTP 1.0", std::string("\x01\0"sv)}}};
}

Status broken(const std::string& what) {
  return {
      Fault::unexpected,
      fmt::format(
          "the listening socket is not guarded: {}; nothing is run on a socket that this build of "
          "ZeroMQ does not guard",
          what)};
}

}  // namespace

Status probe_admission(const std::string& endpoint, const KeyPair& own) {
  try {
    if (knock(endpoint, own, own.public_key) != Answer::let_in) {
      return broken("the node's own key is not let in, so that no peer can be");
    }
    if (knock(endpoint, make_key_pair(), own.public_key) != Answer::refused) {
      return broken("a key that nobody knows is not refused");
    }
  } catch (const zmq::error_t& error) {
    return {Fault::io,
            fmt::format("trying the listening socket at {}: {}", endpoint, error.what())};
  }
  for (const PlainClient& client : plain_clients()) {
    if (speak(endpoint, client.words) != Answer::refused) {
      return broken(fmt::format("a client without encryption ({}) is not refused", client.name));
    }
  }
  return {};
}

}  // namespace sotto::internal
