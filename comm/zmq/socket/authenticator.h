// Decides which keys may connect: the handler of ZeroMQ's authentication protocol
// (rfc.zeromq.org/spec/27) for all sockets of a context, in a thread of its own.
//
// A socket is guarded by set_curve_server. ZeroMQ fails open: without a handler, or without a
// domain that is enforced, it takes any key. So the authenticator is there before a guarded
// socket binds, the domain is set and enforced, and probe_admission (admission_probe.h) tries the
// socket before anybody relies on it.
//
// Thread safety: construct and destroy on one thread; `admit` is called from the authenticator's.
// Ownership: its sockets; the context must outlive it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include <zmq.hpp>

#include <sotto/comm/trust/security.h>

#include "../../internal/wakeup.h"
#include "refusals.h"

namespace sotto::internal {

class Authenticator {
 public:
  /// Whether the holder of this public key, as text, may connect from this host.
  using Admit = std::function<bool(std::string_view key, std::string_view address)>;

  /// Throws zmq::error_t, e.g. when the context has one already.
  Authenticator(zmq::context_t& context, Admit admit);
  ~Authenticator();
  Authenticator(const Authenticator&) = delete;
  Authenticator& operator=(const Authenticator&) = delete;

 private:
  void serve();
  void answer();

  const Admit admit_;
  zmq::socket_t requests_;
  Wakeup stop_;  ///< signalled by the destructor
  std::thread thread_;
};

/// Admits the peers of `security` and the node itself; adds the others to `refusals`, which must
/// outlive the authenticator, if there are any to be told of.
Authenticator::Admit admit_listed(const Security& security, Refusals* refusals = nullptr);

/// Makes a socket that will bind speak CURVE with this key and ask the authenticator. Throws
/// zmq::error_t when this ZeroMQ cannot.
void set_curve_server(zmq::socket_t& socket, const KeyPair& own);
/// Makes a socket that will connect speak CURVE; only the holder of `server` can answer it.
void set_curve_client(zmq::socket_t& socket, const KeyPair& own, const PublicKey& server);

/// The key that the sender of a message proved to have, as text; "" without CURVE.
std::string_view identity_of(const zmq::message_t& message);

}  // namespace sotto::internal
