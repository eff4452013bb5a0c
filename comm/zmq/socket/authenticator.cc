#include "authenticator.h"

#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <sotto/base/start_threads.h>

#include "socket.h"

namespace sotto::internal {
namespace {

constexpr const char* kEndpoint = "inproc://zeromq.zap.01";
constexpr const char* kDomain = "sotto";
/// ZMQ_ZAP_ENFORCE_DOMAIN, which zmq.h names only for drafts; libzmq knows it since 4.3.
constexpr int kEnforceDomain = 93;

/// Parts of a request: version, request id, domain, address, routing id, mechanism, credentials.
enum Part : std::size_t { kVersion, kRequest, kAsked, kAddress, kRoute, kMechanism, kKey, kParts };

std::vector<zmq::message_t> receive_all(zmq::socket_t& socket) {
  std::vector<zmq::message_t> parts;
  zmq::message_t part;
  if (!try_receive(socket, part)) {
    return parts;
  }
  bool more = part.more();
  parts.push_back(std::move(part));
  while (more) {
    zmq::message_t next;
    while (!try_receive(socket, next)) {  // a message comes whole; only signals come between
    }
    more = next.more();
    parts.push_back(std::move(next));
  }
  return parts;
}

void set_bytes(zmq::socket_t& socket, int option, std::span<const std::byte> bytes) {
  if (zmq_setsockopt(socket.handle(), option, bytes.data(), bytes.size()) != 0) {
    throw zmq::error_t();
  }
}

void set_number(zmq::socket_t& socket, int option, int value) {
  set_bytes(socket, option, std::as_bytes(std::span(&value, 1)));
}

}  // namespace

Authenticator::Authenticator(zmq::context_t& context, Admit admit)
    : admit_(std::move(admit)), requests_(context, zmq::socket_type::rep) {
  requests_.set(zmq::sockopt::linger, 0);
  requests_.bind(kEndpoint);
  thread_ = start_thread("the authenticator", [this] { serve(); });
}

Authenticator::~Authenticator() {
  stop_.signal();
  thread_.join();
}

void Authenticator::serve() {
  for (;;) {
    std::array<zmq::pollitem_t, 2> items = {
        {{requests_.handle(), 0, ZMQ_POLLIN, 0}, {nullptr, stop_.descriptor(), ZMQ_POLLIN, 0}}};
    (void)zmq_poll(items.data(), static_cast<int>(items.size()), -1);
    if (stop_.clear()) {
      return;
    }
    answer();
  }
}

void Authenticator::answer() {
  const auto request = receive_all(requests_);
  if (request.empty()) {
    return;
  }
  std::string key;
  const bool sound = request.size() == kParts && request[kVersion].to_string_view() == "1.0" &&
                     request[kAsked].to_string_view() == kDomain &&
                     request[kMechanism].to_string_view() == "CURVE" &&
                     request[kKey].size() == kKeyBytes;
  if (sound) {
    const auto* bytes = static_cast<const std::byte*>(request[kKey].data());
    key = PublicKey(std::span<const std::byte, kKeyBytes>(bytes, kKeyBytes)).text();
  }
  const bool admitted = sound && admit_(key, request[kAddress].to_string_view());
  const auto number = request.size() > kRequest ? request[kRequest].to_string() : std::string();
  const std::array<std::string, 6> reply = {"1.0",
                                            number,
                                            admitted ? "200" : "400",
                                            admitted ? "" : "this key is not listed",
                                            admitted ? key : "",
                                            ""};
  for (std::size_t i = 0; i < reply.size(); ++i) {
    zmq::message_t part(reply[i].data(), reply[i].size());
    const auto flags = i + 1 < reply.size() ? zmq::send_flags::sndmore : zmq::send_flags::none;
    while (!try_send(requests_, part, flags)) {  // the asker waits; only signals come between
    }
  }
}

Authenticator::Admit admit_listed(const Security& security, Refusals* refusals) {
  return [peers = security.peers, own = security.own.public_key.text(), refusals](
             std::string_view key, std::string_view address) {
    const bool admitted = key == own || peers->admitted(key).has_value();
    if (!admitted && refusals != nullptr) {
      refusals->add(key, address);
    }
    return admitted;
  };
}

void set_curve_server(zmq::socket_t& socket, const KeyPair& own) {
  set_number(socket, ZMQ_CURVE_SERVER, 1);
  set_bytes(socket, ZMQ_CURVE_SECRETKEY, own.private_key.bytes());
  socket.set(zmq::sockopt::zap_domain, kDomain);
  set_number(socket, kEnforceDomain, 1);
}

void set_curve_client(zmq::socket_t& socket, const KeyPair& own, const PublicKey& server) {
  set_bytes(socket, ZMQ_CURVE_SERVERKEY, server.bytes());
  set_bytes(socket, ZMQ_CURVE_PUBLICKEY, own.public_key.bytes());
  set_bytes(socket, ZMQ_CURVE_SECRETKEY, own.private_key.bytes());
}

std::string_view identity_of(const zmq::message_t& message) {
  // Null without such a property, which cppzmq would throw for.
  const char* identity = zmq_msg_gets(const_cast<zmq_msg_t*>(message.handle()), "User-Id");
  return identity == nullptr ? std::string_view() : identity;
}

}  // namespace sotto::internal
