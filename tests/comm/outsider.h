// A client of the secured transport from outside of it: ZeroMQ's own socket with whatever keys a
// test gives it, and its messages made of bytes.
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <zmq.hpp>

#include "../../comm/zmq/socket/authenticator.h"
#include "../../comm/zmq/socket/listener.h"
#include "../../comm/zmq/socket/monitor.h"
#include "nodes.h"
#include "raw_peer.h"
#include "support/free_port.h"

namespace sotto::test {

class Outsider {
 public:
  /// Without keys it speaks in plain text.
  Outsider(const std::string& endpoint, const std::optional<KeyPair>& keys,
           const PublicKey& server = keys_of(0).public_key)
      : socket_(context_, zmq::socket_type::dealer) {
    socket_.set(zmq::sockopt::linger, 0);
    if (keys) {
      internal::set_curve_client(socket_, *keys, server);
    }
    monitor_.emplace(context_, socket_,
                     ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                         ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                         ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL);
    socket_.connect(endpoint);
  }

  void send(std::span<const std::byte> body) {
    REQUIRE(socket_.send(zmq::buffer(body.data(), body.size()), zmq::send_flags::none));
  }
  /// Sends if it can at once.
  void try_send(std::span<const std::byte> body) {
    (void)socket_.send(zmq::buffer(body.data(), body.size()), zmq::send_flags::dontwait);
  }
  /// How often the server has taken this client since it was asked last: after a cut it connects
  /// again.
  int times_let_in() {
    int times = 0;
    while (const auto event = monitor_->next()) {
      times += event->kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED ? 1 : 0;
    }
    return times;
  }
  /// A whole frame in one chunk.
  void send_frame(Rank from, Round round, std::size_t payload) {
    const auto frame = make_frame(from, 0, {.round = round}, payload);
    auto message = chunk_message({.round = round}, frame.size(), 0, frame.size());
    std::memcpy(message.data() + message.size() - frame.size(), frame.data(), frame.size());
    send(message);
  }
  /// Waits until the server has taken or refused this client.
  bool let_in() {
    const auto deadline = generous();
    for (;;) {
      if (const auto event = monitor_->next()) {
        return event->kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
      }
      REQUIRE_FALSE(deadline.expired());
      zmq::pollitem_t item = {monitor_->socket().handle(), 0, ZMQ_POLLIN, 0};
      zmq::poll(&item, 1, std::chrono::milliseconds(deadline.left_ms()));
    }
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
  std::optional<internal::SocketMonitor> monitor_;
};

/// Where somebody with these keys listens who takes everybody and everything.
class Sink {
 public:
  explicit Sink(const KeyPair& keys)
      : authenticator_(context_, [](std::string_view, std::string_view) { return true; }),
        listener_(context_, "tcp://127.0.0.1:*", {1U << 20, 1000}, &keys) {}
  /// "127.0.0.1:41234"
  std::string address() const { return listener_.endpoint().substr(6); }

 private:
  zmq::context_t context_;
  internal::Authenticator authenticator_;
  internal::Listener listener_;
};

/// A real rank 0 with keys, its port known; the other ranks are sinks, for which tests speak.
class GuardedNode {
 public:
  static constexpr std::size_t kMostPayload = 1000;

  explicit GuardedNode(Graph graph) : graph_(std::move(graph)), port_(free_port()) {
    auto lines = lines_of(graph_.nodes());
    lines[0].address = fmt::format("127.0.0.1:{}", port_);
    for (Rank rank = 1; rank < graph_.nodes(); ++rank) {
      sinks_.push_back(std::make_unique<Sink>(keys_of(rank)));
      auto& line = lines[static_cast<std::size_t>(rank)];
      line.address = sinks_.back()->address();
      line.may_send = holds(graph_.from[0], rank);
      line.send_to = holds(graph_.to[0], rank);
    }
    peers = std::make_shared<AllowList>(lines);
  }
  ~GuardedNode() {
    if (connecting_.joinable()) {
      connecting_.join();
    }
  }
  GuardedNode(const GuardedNode&) = delete;
  GuardedNode& operator=(const GuardedNode&) = delete;

  std::string endpoint() const { return fmt::format("tcp://127.0.0.1:{}", port_); }

  /// Begins to connect; ready() ends it.
  void start(std::chrono::milliseconds patience = std::chrono::seconds(60)) {
    connecting_ = std::thread([this, patience] {
      auto options = options_for(graph_, 0, nullptr, kMostPayload);
      options.security = Security{keys_of(0), peers};
      options.connect_timeout = patience;
      auto made = make_transport("zmq", options);
      if (made.ok()) {
        node_ = std::move(*made);
      } else {
        status_ = made.status();
      }
    });
  }
  Status ready() {
    connecting_.join();
    return status_;
  }
  Transport& node() { return *node_; }

  void listen(Rank from, Round round) {
    rooms_.emplace_back(kFrameHeaderBytes + kMostPayload);
    Exchange exchange;
    exchange.tag.round = round;
    exchange.receives.push_back({from, rooms_.back()});
    REQUIRE(node_->post(exchange).ok());
  }
  /// Nothing is delivered, now that the outsiders have had their answers.
  void expect_nothing() {
    const auto event = node_->poll(Deadline::after(std::chrono::milliseconds(50)));
    REQUIRE_FALSE(event.ok());
    CHECK(event.status().fault() == Fault::deadline);
  }
  void expect_frame(Rank from, Round round, std::size_t payload) {
    const auto event = node_->poll(generous());
    REQUIRE_MESSAGE(event.ok(), event.status().message());
    REQUIRE_MESSAGE(event->kind == TransportEvent::Kind::frame, event->reason);
    CHECK(event->peer == from);
    CHECK(event->tag.round == round);
    CHECK(rooms_.back().size() >= event->bytes);
    CHECK(event->bytes == kFrameHeaderBytes + payload);
  }
  /// The next event but the ends of exchanges is the loss of `rank`.
  void expect_loss(Rank rank, std::string_view reason) {
    for (;;) {
      const auto event = node_->poll(generous());
      REQUIRE_MESSAGE(event.ok(), event.status().message());
      REQUIRE(event->kind != TransportEvent::Kind::frame);
      if (event->kind == TransportEvent::Kind::peer_lost) {
        CHECK(event->peer == rank);
        CHECK_MESSAGE(event->reason.find(reason) != std::string::npos, event->reason);
        return;
      }
    }
  }

  std::shared_ptr<AllowList> peers;

 private:
  static bool holds(const std::vector<Rank>& ranks, Rank rank) {
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  }

  const Graph graph_;
  const int port_;
  std::vector<std::unique_ptr<Sink>> sinks_;
  std::deque<std::vector<std::byte>> rooms_;
  std::thread connecting_;
  Status status_;
  std::unique_ptr<Transport> node_;
};

/// Two real nodes of a ring; rank 1 reaches rank 0 through `relay_port` if there is one.
inline TransportOptions on_ring(Rank rank, const std::array<int, 2>& ports, int relay_port) {
  auto options = options_for(ring(2), rank, nullptr, 5000);
  auto lines = lines_of(2);
  for (std::size_t at = 0; at < 2; ++at) {
    const bool relayed = rank == 1 && at == 0 && relay_port != 0;
    lines[at].address = fmt::format("127.0.0.1:{}", relayed ? relay_port : ports[at]);
  }
  options.security = Security{keys_of(rank), std::make_shared<AllowList>(lines)};
  return options;
}

}  // namespace sotto::test
