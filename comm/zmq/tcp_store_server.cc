#include "tcp_store_server.h"

#include <algorithm>
#include <array>
#include <utility>

#include "../internal/store_key.h"
#include "admission_test.h"
#include "socket.h"

namespace sotto::internal {
namespace {

constexpr const char* kStop = "inproc://stop";
/// A client has a connection for each of its requests under way.
constexpr std::size_t kMostConnections = 4096;

}  // namespace

TcpStoreServer::TcpStoreServer(const std::string& endpoint, const std::optional<Security>& security)
    : admit_(security ? admit_listed(*security) : nullptr),
      gatekeeper_(security ? std::make_unique<Gatekeeper>(context_, admit_) : nullptr),
      listener_(context_, endpoint, {store_wire::kMaxMessageBytes, kMostConnections},
                security ? &security->own : nullptr),
      stop_(context_, zmq::socket_type::pair),
      stopped_(context_, zmq::socket_type::pair) {
  stopped_.bind(kStop);
  stop_.connect(kStop);
  thread_ = std::thread([this] { serve(); });
}

TcpStoreServer::~TcpStoreServer() {
  zmq::message_t now;
  while (!try_send(stop_, now)) {  // an empty pair takes one message; only signals come between
  }
  thread_.join();
}

void TcpStoreServer::serve() {
  bool stopping = false;
  Deadline end(Deadline::Clock::time_point::max());
  for (;;) {
    while (const auto incoming = listener_.receive()) {
      answer(*incoming);
    }
    expire();
    (void)listener_.ended();
    if (!stopping && stop_requested()) {
      stopping = true;
      end = Deadline::after(kFarewell);
    }
    if (stopping && (listener_.connections() == 0 || end.expired())) {
      return;
    }
    std::array<zmq::pollitem_t, 3> items = {{{listener_.socket().handle(), 0, ZMQ_POLLIN, 0},
                                             {listener_.monitor().handle(), 0, ZMQ_POLLIN, 0},
                                             {stopped_.handle(), 0, ZMQ_POLLIN, 0}}};
    (void)zmq_poll(items.data(), static_cast<int>(items.size()), wait_ms(end));
  }
}

bool TcpStoreServer::stop_requested() {
  zmq::message_t message;
  return try_receive(stopped_, message);
}

/// Until a client's wait ends, or the server's.
int TcpStoreServer::wait_ms(Deadline end) const {
  int shortest = end.left_ms();
  for (const auto& [route, waiting] : waiting_) {
    shortest = std::min(shortest, waiting.until.left_ms());
  }
  return shortest;
}

Status TcpStoreServer::test(const Security& security) const {
  return test_admission(listener_.endpoint(), security.own);
}

void TcpStoreServer::answer(const Incoming& incoming) {
  if (admit_ && !admit_(incoming.key)) {
    return;  // its connection is older than the list that names it no longer
  }
  const auto request = store_wire::parse_request(
      {static_cast<const std::byte*>(incoming.body.data()), incoming.body.size()});
  if (!request) {
    return;  // not one of our clients
  }
  switch (request->kind) {
    case store_wire::Kind::set:
      set(*request);
      break;
    case store_wire::Kind::remove:
      if (const auto found = values_.find(request->key); found != values_.end()) {
        values_.erase(found);
      }
      break;
    case store_wire::Kind::get: {
      const auto found = values_.find(request->key);
      if (found == values_.end()) {
        waiting_.insert_or_assign(
            incoming.route,
            Waiting{request->key, Deadline::after(std::chrono::milliseconds(request->wait_ms))});
      } else {
        listener_.reply(incoming.route, store_wire::make_reply(found->second));
      }
      return;
    }
  }
  listener_.reply(incoming.route, store_wire::make_reply({}));
}

void TcpStoreServer::set(const store_wire::Request& request) {
  values_.insert_or_assign(request.key, std::vector(request.value.begin(), request.value.end()));
  std::erase_if(waiting_, [&](const auto& entry) {
    if (entry.second.key != request.key) {
      return false;
    }
    listener_.reply(entry.first, store_wire::make_reply(request.value));
    return true;
  });
}

void TcpStoreServer::expire() {
  std::erase_if(waiting_, [&](const auto& entry) {
    if (!entry.second.until.expired()) {
      return false;
    }
    listener_.reply(entry.first, store_wire::make_refusal(store_overdue(entry.second.key)));
    return true;
  });
}

}  // namespace sotto::internal
