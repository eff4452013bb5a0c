// The client of the TCP store, and the store that serves as well.
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
  TcpStore(std::string endpoint, bool serve) : endpoint_(std::move(endpoint)) {
    if (serve) {
      server_ = std::make_unique<TcpStoreServer>(endpoint_);
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
  Result<std::vector<std::byte>> ask(store_wire::Request request, Deadline deadline);
  zmq::socket_t open();
  zmq::socket_t borrow();
  void give_back(zmq::socket_t socket);

  const std::string endpoint_;
  std::unique_ptr<TcpStoreServer> server_;  // outlives our own connections
  zmq::context_t context_;
  std::mutex mutex_;
  std::vector<zmq::socket_t> idle_;  ///< connections without a request under way
};

zmq::socket_t TcpStore::open() {
  zmq::socket_t socket(context_, zmq::socket_type::dealer);
  set_common_options(socket, endpoint_, store_wire::kMaxMessageBytes);
  socket.set(zmq::sockopt::reconnect_ivl, 20);
  socket.connect(endpoint_);
  return socket;
}

zmq::socket_t TcpStore::borrow() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) {
    return open();
  }
  auto socket = std::move(idle_.back());
  idle_.pop_back();
  return socket;
}

void TcpStore::give_back(zmq::socket_t socket) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(socket));
}

Result<std::vector<std::byte>> TcpStore::ask(store_wire::Request request, Deadline deadline) {
  request.wait_ms = static_cast<std::uint32_t>(deadline.left_ms(kLongestWaitMs));
  const auto end = Deadline::after(std::chrono::milliseconds(request.wait_ms) + kRoundTrip);
  try {
    auto socket = borrow();
    auto message = store_wire::make_request(request);
    while (!try_send(socket, message)) {  // a fresh queue takes one message
    }
    zmq::message_t reply;
    while (!try_receive(socket, reply)) {
      if (end.expired()) {
        // The answer may still come; this connection is of no more use.
        return Status(Fault::deadline, fmt::format("the store at {} did not answer about '{}'",
                                                   endpoint_, request.key));
      }
      zmq::pollitem_t item = {socket.handle(), 0, ZMQ_POLLIN, 0};
      (void)zmq_poll(&item, 1, end.left_ms());
    }
    auto answer = store_wire::parse_reply(view_of(reply));
    give_back(std::move(socket));
    return answer;
  } catch (const zmq::error_t& error) {
    return Status(Fault::io, fmt::format("the store at {}: {}", endpoint_, error.what()));
  }
}

}  // namespace
}  // namespace internal

std::shared_ptr<Store> make_tcp_store(const std::string& host, int port, bool serve,
                                      bool insecure) {
  const auto address = serve ? internal::resolve_bind_address("store", host, insecure)
                             : internal::resolve_host("store", host);
  const auto endpoint = address.endpoint(fmt::to_string(port));
  try {
    return std::make_shared<internal::TcpStore>(endpoint, serve);
  } catch (const zmq::error_t& error) {
    refuse("store", endpoint,
           fmt::format("it cannot be {}: {}", serve ? "served" : "reached", error.what()));
  }
}

}  // namespace sotto
