// The client of the TCP store, and the store that serves as well.
#include <array>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <zmq.hpp>

#include <sotto/base/error.h>
#include <sotto/comm/store.h>

#include "../internal/address.h"
#include "../internal/store_key.h"
#include "dialer.h"
#include "gatekeeper.h"
#include "monitor.h"
#include "socket.h"
#include "tcp_store_server.h"
#include "tcp_store_wire.h"

namespace sotto {
namespace internal {
namespace {

/// How long a set or a remove waits for the server, which may start after its clients.
constexpr std::chrono::seconds kPatience{30};
/// A look at a key takes a round trip, however soon the wait for the key ends.
constexpr std::chrono::milliseconds kRoundTrip{1000};
constexpr int kLongestWaitMs = 2'000'000'000;

std::span<const std::byte> view_of(const zmq::message_t& message) {
  return {static_cast<const std::byte*>(message.data()), message.size()};
}

class TcpStore final : public Store {
 public:
  /// With `security`, node 0 of its list serves. Throws Error when the door does not hold.
  TcpStore(std::string endpoint, bool serve, const std::optional<Security>& security)
      : endpoint_(std::move(endpoint)) {
    if (serve) {
      server_ = std::make_unique<TcpStoreServer>(endpoint_, security);
    }
    if (security) {
      if (Status held = serve ? server_->test(*security) : Status(); !held) {
        refuse("store", endpoint_, held.message());
      }
      curve_ = CurveClient{security->own, server_key(*security, serve)};
    }
    // A connection that stays shows the server that we may still need it.
    give_back(open());
  }

  Status set(std::string_view key, std::span<const std::byte> value) override {
    if (auto fits = check_store_entry(key, value); !fits) {
      return fits;
    }
    return ask({store_wire::Kind::set, std::string(key), value}, Deadline::after(kPatience))
        .status();
  }
  Result<std::vector<std::byte>> get(std::string_view key, Deadline deadline) override {
    if (auto fits = check_store_key(key); !fits) {
      return fits;
    }
    return ask({store_wire::Kind::get, std::string(key), {}}, deadline);
  }
  Status remove(std::string_view key) override {
    if (auto fits = check_store_key(key); !fits) {
      return fits;
    }
    return ask({store_wire::Kind::remove, std::string(key), {}}, Deadline::after(kPatience))
        .status();
  }

 private:
  struct Connection {
    zmq::socket_t socket;
    std::unique_ptr<SocketMonitor> refusals;  ///< null in plain text
  };

  static PublicKey server_key(const Security& security, bool serve);
  Result<std::vector<std::byte>> ask(store_wire::Request request, Deadline deadline);
  Status await_reply(Connection& connection, zmq::message_t& reply, Deadline end) const;
  Connection open();
  Connection borrow();
  void give_back(Connection connection);

  const std::string endpoint_;
  std::unique_ptr<TcpStoreServer> server_;  // outlives our own connections
  zmq::context_t context_;
  std::mutex mutex_;
  std::optional<CurveClient> curve_;
  std::vector<Connection> idle_;  ///< connections without a request under way
};

/// A node that serves knows itself; the others know node 0 by their lists.
PublicKey TcpStore::server_key(const Security& security, bool serve) {
  if (serve) {
    return security.own.public_key;
  }
  const auto server = security.peers->find(0);
  if (!server) {
    refuse("peers", "rank 0", "node 0 serves the store, and the list does not name it");
  }
  return server->key;
}

TcpStore::Connection TcpStore::open() {
  Connection made{zmq::socket_t(context_, zmq::socket_type::dealer), nullptr};
  set_common_options(made.socket, endpoint_, store_wire::kMaxMessageBytes);
  made.socket.set(zmq::sockopt::reconnect_ivl, 20);
  if (curve_) {
    made.socket.set(zmq::sockopt::reconnect_ivl_max, 1000);
    set_curve_client(made.socket, curve_->own, curve_->server);
    made.refusals =
        std::make_unique<SocketMonitor>(context_, made.socket, ZMQ_EVENT_HANDSHAKE_FAILED_AUTH);
  }
  made.socket.connect(endpoint_);
  return made;
}

TcpStore::Connection TcpStore::borrow() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) {
    return open();
  }
  auto connection = std::move(idle_.back());
  idle_.pop_back();
  return connection;
}

void TcpStore::give_back(Connection connection) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(connection));
}

Result<std::vector<std::byte>> TcpStore::ask(store_wire::Request request, Deadline deadline) {
  request.wait_ms = static_cast<std::uint32_t>(deadline.left_ms(kLongestWaitMs));
  const auto end = Deadline::after(std::chrono::milliseconds(request.wait_ms) + kRoundTrip);
  try {
    auto connection = borrow();
    auto message = store_wire::make_request(request);
    while (!try_send(connection.socket, message)) {  // a fresh queue takes one message
    }
    zmq::message_t reply;
    if (Status came = await_reply(connection, reply, end); !came) {
      // The answer may still come; this connection is of no more use.
      return came.with_context(fmt::format("asking about '{}'", request.key));
    }
    auto answer = store_wire::parse_reply(view_of(reply));
    give_back(std::move(connection));
    return answer;
  } catch (const zmq::error_t& error) {
    return Status(Fault::io, fmt::format("the store at {}: {}", endpoint_, error.what()));
  }
}

Status TcpStore::await_reply(Connection& connection, zmq::message_t& reply, Deadline end) const {
  while (!try_receive(connection.socket, reply)) {
    if (connection.refusals && connection.refusals->next()) {
      return {Fault::unexpected,
              fmt::format("the store at {} does not admit this node's key: node 0's list of peers "
                          "must name it",
                          endpoint_)};
    }
    if (end.expired()) {
      return {Fault::deadline, fmt::format("the store at {} did not answer", endpoint_)};
    }
    std::array<zmq::pollitem_t, 2> items = {{{connection.socket.handle(), 0, ZMQ_POLLIN, 0}}};
    if (connection.refusals) {
      items[1] = {connection.refusals->socket().handle(), 0, ZMQ_POLLIN, 0};
    }
    (void)zmq_poll(items.data(), connection.refusals ? 2 : 1, end.left_ms());
  }
  return {};
}

}  // namespace
}  // namespace internal

std::shared_ptr<Store> make_tcp_store(const std::string& host, int port, bool serve, bool insecure,
                                      const std::optional<Security>& security) {
  const internal::Reach reach{.beyond_loopback = insecure || security, .everywhere = false};
  const auto address = serve ? internal::resolve_bind_address("store", host, reach)
                             : internal::resolve_host("store", host);
  const auto endpoint = address.endpoint(fmt::to_string(port));
  try {
    return std::make_shared<internal::TcpStore>(endpoint, serve, security);
  } catch (const zmq::error_t& error) {
    refuse("store", endpoint,
           fmt::format("it cannot be {}: {}", serve ? "served" : "reached", error.what()));
  }
}

}  // namespace sotto
