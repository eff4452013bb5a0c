#include "line.h"

#include "../socket/authenticator.h"
#include "../socket/socket.h"
#include "channel_wire.h"

namespace sotto::internal {
namespace {

/// Chunks that the socket holds: enough to keep a link busy, few enough to say other things soon.
constexpr int kQueuedChunks = 4;
constexpr int kEvents = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                        ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                        ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED;

}  // namespace

Line::Line(zmq::context_t& context, const std::string& endpoint, const KeyPair& own,
           const PublicKey& server)
    : endpoint_(endpoint),
      socket_(context, zmq::socket_type::dealer),
      monitor_(context, socket_, kEvents) {
  set_common_options(socket_, endpoint, channel_wire::kMaxWireBytes);
  socket_.set(zmq::sockopt::sndhwm, kQueuedChunks);
  // A connection that broke has lost messages; a new one would only hide that.
  socket_.set(zmq::sockopt::reconnect_ivl, -1);
  // Queue for a connection only: what is queued goes with it.
  socket_.set(zmq::sockopt::immediate, 1);
  set_curve_client(socket_, own, server);
  socket_.connect(endpoint);
}

Line::State Line::look() {
  while (const auto event = monitor_.next()) {
    note(*event);
  }
  return state_;
}

void Line::note(const SocketEvent& event) {
  if (event.kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
    state_ = State::open;
    return;
  }
  if (state_ == State::broken) {
    return;  // one failure has several events
  }
  if (state_ == State::open) {
    trouble_ = ChannelTrouble::lost;
    reason_ = "the connection ended";
  } else if (event.kind == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) {
    trouble_ = ChannelTrouble::not_admitted;
    reason_ = "it does not admit this site's key: its list of peers must name it";
  } else if (event.kind == ZMQ_EVENT_CLOSED) {
    trouble_ = ChannelTrouble::unreachable;
    reason_ = "nobody listens at " + endpoint_;
  } else {
    trouble_ = ChannelTrouble::other_key;
    reason_ = "what listens at " + endpoint_ +
              " ended the handshake: it has another key than the list of peers says, or is no site";
  }
  state_ = State::broken;
}

bool Line::send(std::span<const std::byte> message) {
  zmq::message_t body(message.data(), message.size());
  return try_send(socket_, body);
}

bool Line::writable() { return internal::writable(socket_); }

}  // namespace sotto::internal
