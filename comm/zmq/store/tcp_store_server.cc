#include "tcp_store_server.h"

#include <algorithm>
#include <array>
#include <utility>

#include <sotto/base/start_threads.h>

#include "../../internal/store_key.h"
#include "../socket/admission_probe.h"
#include "../socket/socket.h"

namespace sotto::internal {
namespace {

/// A client has a connection for each of its requests under way. In plain text it may be anybody's,
/// else strangers have the spare ones too.
constexpr std::size_t kMostConnections = 4096;
constexpr std::size_t kConnectionsOfClient = 4;
constexpr std::size_t kSpareConnections = 64;

std::size_t most_connections(const std::optional<Security>& security) {
  return security ? kSpareConnections + kConnectionsOfClient * (security->peers->peers().size() + 1)
                  : kMostConnections;
}

}  // namespace

TcpStoreServer::TcpStoreServer(const std::string& endpoint, const std::optional<Security>& security,
                               StopRequest stop)
    : security_(security),
      stop_request_(std::move(stop)),
      authenticator_(security ? std::make_unique<Authenticator>(context_, admit_listed(*security))
                              : nullptr),
      listener_(context_, endpoint, {store_wire::kMostMessageBytes, most_connections(security)},
                security ? &security->own : nullptr) {
  thread_ = start_thread("the store", [this] { serve(); });
}

TcpStoreServer::~TcpStoreServer() {
  stop_.signal();
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
    drop_ended();
    if (!stopping && stop_.clear()) {
      stopping = true;
      const bool hurry = stop_request_ && stop_request_();
      end = Deadline::after(hurry ? Deadline::Clock::duration(after_stop::kStore) : kLinger);
    }
    if (stopping && (listener_.connections() == 0 || end.expired())) {
      return;
    }
    std::array<zmq::pollitem_t, 3> items = {{{listener_.socket().handle(), 0, ZMQ_POLLIN, 0},
                                             {listener_.monitor().handle(), 0, ZMQ_POLLIN, 0},
                                             {nullptr, stop_.descriptor(), ZMQ_POLLIN, 0}}};
    (void)zmq_poll(items.data(), static_cast<int>(items.size()), wait_ms(end));
  }
}

/// Milliseconds until a client's wait ends, or the server's.
int TcpStoreServer::wait_ms(Deadline end) const {
  int shortest = end.left_ms();
  if (listener_.ending()) {
    shortest = std::min(shortest, static_cast<int>(kEndLook.count()));
  }
  for (const auto& [route, waiting] : waiting_) {
    shortest = std::min(shortest, waiting.until.left_ms());
  }
  return shortest;
}

Status TcpStoreServer::test(const Security& security) const {
  return probe_admission(listener_.endpoint(), security.own);
}

/// Forgets the waits and the unfinished values of connections that are gone.
void TcpStoreServer::drop_ended() {
  for (const int connection : listener_.ended()) {
    if (const auto known = routes_.find(connection); known != routes_.end()) {
      waiting_.erase(known->second);
      values_.drop(known->second);
      routes_.erase(known);
    }
  }
}

bool TcpStoreServer::know(const std::string& identity, StoredValues::Client* client) const {
  if (!security_) {
    return true;
  }
  if (identity == security_->own.public_key.text()) {
    *client = 0;
    return true;
  }
  const auto line = security_->peers->admitted(identity);
  *client = line ? std::optional(line->rank) : std::nullopt;
  return line && line->rank != 0;  // which we are
}

void TcpStoreServer::answer(const Incoming& incoming) {
  // The number of this connection may have been that of one that has ended, whose route and waits
  // are not to become this one's. A message that came before its connection ended is dropped: its
  // client was not told that it was taken.
  drop_ended();
  StoredValues::Client client;
  const auto known = routes_.find(incoming.connection);
  const bool heard_before = known != routes_.end() && known->second == incoming.route;
  if (!know(incoming.key, &client)) {
    if (heard_before) {
      listener_.cut(incoming.connection);  // it is older than the list that names it no longer
    }
    return;
  }
  const auto request = store_wire::parse_request(view_of(incoming.body));
  if (!request || !listener_.alive(incoming.connection)) {
    return;  // not one of our clients, or gone
  }
  routes_[incoming.connection] = incoming.route;
  switch (request->kind) {
    case store_wire::Kind::set:
      set(incoming, client, *request);
      break;
    case store_wire::Kind::get:
      get(incoming, client, *request);
      break;
    case store_wire::Kind::remove: {
      const Status removed = values_.remove(client, request->key);
      listener_.reply(incoming.route,
                      removed ? store_wire::make_done() : store_wire::make_refusal(removed));
    }
  }
}

void TcpStoreServer::set(const Incoming& incoming, const StoredValues::Client& client,
                         const store_wire::Request& request) {
  const auto taken = values_.set(client, incoming.route, {request.key, request.piece});
  listener_.reply(incoming.route,
                  taken ? store_wire::make_done() : store_wire::make_refusal(taken.status()));
  if (taken && *taken) {
    wake(request.key);
  }
}

void TcpStoreServer::get(const Incoming& incoming, const StoredValues::Client& client,
                         const store_wire::Request& request) {
  const auto found = values_.get(client, request.key);
  if (!found) {
    listener_.reply(incoming.route, store_wire::make_refusal(found.status()));
    return;
  }
  const StoredValues::Value* value = *found;
  if (request.version != 0) {
    const bool same = value != nullptr && value->version == request.version &&
                      request.piece.offset <= value->bytes.size();
    listener_.reply(incoming.route, same ? store_wire::make_piece(*value, request.piece.offset,
                                                                  store_wire::kPieceBytes)
                                         : store_wire::make_refusal(store_replaced(request.key)));
  } else if (value != nullptr) {
    listener_.reply(incoming.route,
                    store_wire::make_piece(*value, 0, store_wire::kFirstPieceBytes));
  } else {
    waiting_.insert_or_assign(
        incoming.route,
        Waiting{request.key, Deadline::after(std::chrono::milliseconds(request.wait_ms)),
                incoming.key});
  }
}

/// Answers the clients that wait for a key and are still listed.
void TcpStoreServer::wake(const std::string& key) {
  std::erase_if(waiting_, [&](const auto& entry) {
    const auto& [route, waiting] = entry;
    if (waiting.key != key) {
      return false;
    }
    StoredValues::Client client;
    const auto found = know(waiting.identity, &client)
                           ? values_.get(client, key)
                           : Result<const StoredValues::Value*>(nullptr);
    if (found && *found != nullptr) {
      listener_.reply(route, store_wire::make_piece(**found, 0, store_wire::kFirstPieceBytes));
    }
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
