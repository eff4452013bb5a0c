// The serving side of the TCP store: a thread that keeps the values and answers clients.
//
// A get of a key that is not there waits at the server until it is, or until the client's own
// deadline. With keys, clients are the node itself, as node 0, and the listed peers, by their
// ranks; the list is looked at before every message and every answer. The destructor first lets the
// clients go: it serves on until the last one has disconnected, for kLinger at most.
//
// Thread safety: constructor and destructor on one thread; everything else is the server's thread.
// Ownership: the values.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <zmq.hpp>

#include <sotto/comm/deadline.h>

#include "../../internal/wakeup.h"
#include "../socket/authenticator.h"
#include "../socket/listener.h"
#include "../socket/socket.h"
#include "stored_values.h"
#include "tcp_store_wire.h"

namespace sotto::internal {

class TcpStoreServer {
 public:
  /// Long enough for answers under way; a client that hangs is not worth more.
  static constexpr std::chrono::seconds kLinger{1};

  /// With `security`, clients are the node itself and its listed peers. Throws zmq::error_t when
  /// the address cannot be bound.
  TcpStoreServer(const std::string& endpoint, const std::optional<Security>& security,
                 StopRequest stop);
  ~TcpStoreServer();
  /// OK when strangers are refused (admission_probe.h).
  Status test(const Security& security) const;
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;

 private:
  struct Waiting {
    std::string key;
    Deadline until;
    std::string identity;  ///< identity of the client, as text
  };

  void serve();
  void drop_ended();
  void answer(const Incoming& incoming);
  /// False for a client that is not listed (any more).
  bool know(const std::string& identity, StoredValues::Client* client) const;
  void set(const Incoming& incoming, const StoredValues::Client& client,
           const store_wire::Request& request);
  void get(const Incoming& incoming, const StoredValues::Client& client,
           const store_wire::Request& request);
  void wake(const std::string& key);
  void expire();
  int wait_ms(Deadline end) const;

  const std::optional<Security> security_;
  const StopRequest stop_request_;
  zmq::context_t context_ = new_context(2 * kDescriptorsOfSocket);
  const std::unique_ptr<Authenticator> authenticator_;
  Listener listener_;
  Wakeup stop_;  ///< signalled by the destructor
  StoredValues values_;
  std::map<int, std::string> routes_;  ///< routes of connections that have spoken, by connection
  /// Waiting clients by route: each waits for one key at a time.
  std::map<std::string, Waiting> waiting_;
  std::thread thread_;
};

}  // namespace sotto::internal
