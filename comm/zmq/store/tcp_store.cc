// The client of the TCP store, and the store that serves as well.
#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <zmq.hpp>

#include <sotto/base/error.h>
#include <sotto/comm/stores.h>

#include "../../internal/address/address.h"
#include "../../internal/store_key.h"
#include "../../internal/waits.h"
#include "../socket/authenticator.h"
#include "../socket/monitor.h"
#include "../socket/peer_connection.h"
#include "../socket/socket.h"
#include "tcp_store_server.h"
#include "tcp_store_wire.h"

namespace sotto {
namespace internal {
namespace {

/// How long a set or a remove waits for the server, which may start after its clients; and the next
/// piece of a long value may take.
constexpr std::chrono::seconds kPatience{30};
/// How often a value is fetched anew that is replaced meanwhile.
constexpr int kAttempts = 10;
/// A look at a key takes a round trip, however soon the wait for the key ends.
constexpr std::chrono::milliseconds kRoundTrip{1000};
/// The first pause before a client that was refused, or heard nonsense, asks again; pauses
/// double up to kLongestPause. A refusal is not authenticated, and anybody on the way can say
/// it.
constexpr std::chrono::milliseconds kFirstPause{20};
constexpr std::chrono::milliseconds kLongestPause{500};
constexpr int kLongestWaitMs = 2'000'000'000;

/// The fewest descriptors that a node opens after its store: looking at the machine's addresses,
/// connections of the store's own, and a neighbour's. Without them later messages would speak of
/// anything else.
constexpr std::size_t kDescriptorsOfNode = 2 * kDescriptorsOfSocket;

class TcpStore final : public Store {
 public:
  /// With `security`, node 0 of its list serves. Throws Error when strangers are let in.
  TcpStore(std::string endpoint, bool serve, const std::optional<Security>& security,
           const StopRequest* stop)
      : endpoint_(std::move(endpoint)), stop_(stop == nullptr ? StopRequest() : *stop) {
    if (serve) {
      server_ = std::make_unique<TcpStoreServer>(endpoint_, security, stop_);
    }
    if (security) {
      if (Status held = serve ? server_->test(*security) : Status(); !held.ok()) {
        refuse("store", endpoint_, held.message());
      }
      curve_ = CurveClient{security->own, server_key(*security, serve)};
    }
    // A connection that stays shows the server that we may still need it.
    give_back(open());
  }

  Status set(std::string_view key, std::span<const std::byte> value) override;
  Result<std::vector<std::byte>> get(std::string_view key, Deadline deadline) override;
  Status remove(std::string_view key) override;

 private:
  struct Connection {
    zmq::socket_t socket;
    std::unique_ptr<SocketMonitor> refusals;  ///< events of refused handshakes; null in plain text
    std::size_t under_way = 0;                ///< requests that are not answered yet
    bool refused = false;  ///< the server refused the connection, which is of no more use
  };
  using Bytes = std::vector<std::byte>;

  static PublicKey server_key(const Security& security, bool serve);
  template <typename Talk>
  auto talk(std::string_view key, Deadline patience, const Talk& talk)
      -> decltype(talk(std::declval<Connection&>()));
  Result<Bytes> download(Connection& connection, const std::string& key, Deadline deadline,
                         bool* replaced);
  Status send(Connection& connection, const store_wire::Request& request) const;
  Result<store_wire::Reply> receive(Connection& connection, std::string_view key,
                                    Deadline end) const;
  Status refusal(int event) const;
  Connection open();
  Connection borrow();
  void give_back(Connection connection);

  const std::string endpoint_;
  const StopRequest stop_;
  std::unique_ptr<TcpStoreServer> server_;  // outlives our own connections
  zmq::context_t context_ = new_context(kDescriptorsOfNode);
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
  Connection made{zmq::socket_t(context_, zmq::socket_type::dealer), nullptr, 0};
  set_common_options(made.socket, endpoint_, store_wire::kMostMessageBytes);
  made.socket.set(zmq::sockopt::reconnect_ivl, 20);
  if (curve_) {
    made.socket.set(zmq::sockopt::reconnect_ivl_max, 1000);
    set_curve_client(made.socket, curve_->own, curve_->server);
    // After either of these ZeroMQ does not try again by itself.
    made.refusals = std::make_unique<SocketMonitor>(
        context_, made.socket,
        ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL);
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

Status TcpStore::set(std::string_view key, std::span<const std::byte> value) {
  if (auto fits = check_store_entry(key, value); !fits) {
    return fits;
  }
  return talk(key, server_deadline(kPatience, stop_), [&](Connection& connection) -> Status {
    std::size_t sent = 0;
    for (bool more = true; more || connection.under_way > 0;) {
      if (more && connection.under_way < store_wire::kWindow) {
        const Piece piece = piece_at(value, sent, store_wire::kPieceBytes);
        Status asked = send(
            connection, {.kind = store_wire::Kind::set, .key = std::string(key), .piece = piece});
        if (!asked.ok()) {
          return asked;
        }
        sent += piece.bytes.size();
        more = !piece.last();
      } else if (auto reply = receive(connection, key, server_deadline(kPatience, stop_)); !reply) {
        return reply.status();
      }
    }
    return {};
  });
}

Result<std::vector<std::byte>> TcpStore::get(std::string_view key, Deadline deadline) {
  if (auto fits = check_store_key(key); !fits) {
    return fits;
  }
  for (int attempt = 1;; ++attempt) {
    bool replaced = false;
    auto value = talk(key, deadline, [&](Connection& connection) {
      return download(connection, std::string(key), deadline, &replaced);
    });
    if (!replaced || attempt == kAttempts) {
      return value;
    }
  }
}

Status TcpStore::remove(std::string_view key) {
  if (auto fits = check_store_key(key); !fits) {
    return fits;
  }
  return talk(key, server_deadline(kPatience, stop_), [&](Connection& connection) -> Status {
    if (Status asked =
            send(connection, {.kind = store_wire::Kind::remove, .key = std::string(key)});
        !asked.ok()) {
      return asked;
    }
    return receive(connection, key, server_deadline(kPatience, stop_)).status();
  });
}

/// Runs a conversation on a connection of its own, and keeps that unless an answer may still come.
/// One that is refused begins anew on another connection, for `patience` and a round trip at least.
template <typename Talk>
auto TcpStore::talk(std::string_view key, Deadline patience, const Talk& talk)
    -> decltype(talk(std::declval<Connection&>())) {
  const auto least = Deadline::after(kRoundTrip);
  try {
    for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
      auto connection = borrow();
      auto result = talk(connection);
      if (connection.refused && !patience.stopped() && !(patience.expired() && least.expired())) {
        sleep_until(Deadline::after(pause, patience.stop()));
        continue;
      }
      if (connection.under_way == 0) {
        give_back(std::move(connection));
      }
      return result;
    }
  } catch (const zmq::error_t& error) {
    return Status(Fault::io, fmt::format("the store at {}, asking about '{}': {}", endpoint_,
                                         std::string(key), error.what()));
  }
}

/// The beginning, for which the server may wait, and then the rest of the same value.
Result<std::vector<std::byte>> TcpStore::download(Connection& connection, const std::string& key,
                                                  Deadline deadline, bool* replaced) {
  const auto wait_ms = static_cast<std::uint32_t>(deadline.left_ms(kLongestWaitMs));
  if (Status asked =
          send(connection, {.kind = store_wire::Kind::get, .key = key, .wait_ms = wait_ms});
      !asked.ok()) {
    return asked;
  }
  const auto span = std::chrono::milliseconds(wait_ms) + kRoundTrip;
  auto first = receive(connection, key, server_deadline(span, stop_, deadline));
  if (!first) {
    return first.status();
  }
  const std::size_t total = first->total;
  Bytes value = std::move(first->bytes);
  value.reserve(total);
  for (std::size_t asked = value.size(); value.size() < total;) {
    if (asked < total && connection.under_way < store_wire::kWindow) {
      Status sent = send(connection, {.kind = store_wire::Kind::get,
                                      .key = key,
                                      .piece = {.offset = asked},
                                      .version = first->version});
      if (!sent.ok()) {
        return sent;
      }
      asked += std::min(store_wire::kPieceBytes, total - asked);
      continue;
    }
    const auto next = receive(connection, key, server_deadline(kPatience, stop_));
    if (!next) {
      *replaced = next.status().fault() == Fault::unexpected && !connection.refused;
      return next.status();
    }
    if (next->version != first->version ||
        next->bytes.size() != std::min(store_wire::kPieceBytes, total - value.size())) {
      return Status(Fault::malformed, "the store's server sent another piece than was asked for");
    }
    value.insert(value.end(), next->bytes.begin(), next->bytes.end());
  }
  return value;
}

/// The socket has room for all that is under way: where it takes nothing, the connection is gone
/// for good, and waiting would never end.
Status TcpStore::send(Connection& connection, const store_wire::Request& request) const {
  auto message = store_wire::make_request(request);
  if (try_send(connection.socket, message)) {
    ++connection.under_way;
    return {};
  }
  const auto event = connection.refusals ? connection.refusals->next() : std::nullopt;
  connection.refused = true;
  return refusal(event ? event->kind : 0);
}

Result<store_wire::Reply> TcpStore::receive(Connection& connection, std::string_view key,
                                            Deadline end) const {
  zmq::message_t reply;
  while (!try_receive(connection.socket, reply)) {
    if (const auto event = connection.refusals ? connection.refusals->next() : std::nullopt) {
      connection.refused = true;
      return refusal(event->kind);
    }
    if (end.expired()) {
      return Status(end.fault(), fmt::format("{}asking about '{}': the store at {} did not answer",
                                             end.stopped() ? "stopped while " : "",
                                             std::string(key), endpoint_));
    }
    std::array<zmq::pollitem_t, 2> items = {{{connection.socket.handle(), 0, ZMQ_POLLIN, 0}}};
    if (connection.refusals) {
      items[1] = {connection.refusals->socket().handle(), 0, ZMQ_POLLIN, 0};
    }
    (void)zmq_poll(items.data(), connection.refusals ? 2 : 1, end.look_ms());
  }
  --connection.under_way;
  return store_wire::parse_reply(view_of(reply));
}

Status TcpStore::refusal(int event) const {
  if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) {
    return {Fault::unexpected,
            fmt::format("the store at {} does not admit this node's key: node 0's list of peers "
                        "must name it",
                        endpoint_)};
  }
  return {Fault::deadline, fmt::format("what answers at {} is no store", endpoint_)};
}

}  // namespace
}  // namespace internal

std::shared_ptr<Store> make_tcp_store(const std::string& host, int port, bool serve,
                                      const StoreOptions& options) {
  (void)internal::await_name("store", host, options.known_by);
  const internal::Reach reach{.beyond_loopback = options.insecure || options.security,
                              .everywhere = false};
  const auto address = serve ? internal::resolve_bind_address("store", host, reach)
                             : internal::resolve_host("store", host);
  const auto endpoint = address.endpoint(fmt::to_string(port));
  try {
    return std::make_shared<internal::TcpStore>(endpoint, serve, options.security,
                                                options.known_by.stop());
  } catch (const zmq::error_t& error) {
    refuse("store", endpoint,
           fmt::format("it cannot be {}: {}{}", serve ? "served" : "reached", error.what(),
                       error.num() == EADDRINUSE
                           ? "; most likely another process is node 0 already: give each process "
                             "of a run its own rank, and each run a port of its own"
                           : ""));
  }
}

}  // namespace sotto
