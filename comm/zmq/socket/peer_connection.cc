#include "peer_connection.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "authenticator.h"
#include "socket.h"

namespace sotto::internal {
namespace {

/// Pause between two attempts: kFirstRetryPause, doubling up to kLongestRetryPause.
constexpr std::chrono::milliseconds kFirstRetryPause{20};
constexpr std::chrono::milliseconds kLongestRetryPause{500};
/// Messages that the socket holds: enough to keep a link busy, few enough to leave quickly and to
/// say other things soon.
constexpr int kQueuedMessages = 4;
/// Milliseconds until ZeroMQ would connect again by itself: weeks.
constexpr int kNever = std::numeric_limits<int>::max();
constexpr int kConnectionEvents = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                                  ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                                  ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_DISCONNECTED |
                                  ZMQ_EVENT_CLOSED | ZMQ_EVENT_CONNECTED;

}  // namespace

PeerConnection::PeerConnection(zmq::context_t& context, ConnectionOptions options)
    : context_(context), options_(std::move(options)), pause_(kFirstRetryPause) {
  connect();
}

void PeerConnection::connect() {
  ++attempts_;
  monitor_.reset();
  state_ = options_.curve ? State::opening : State::open;
  reached_ = false;
  end_.reset();
  socket_ = zmq::socket_t(context_, zmq::socket_type::dealer);
  set_common_options(socket_, options_.endpoint, options_.max_message_bytes);
  socket_.set(zmq::sockopt::sndhwm, kQueuedMessages);
  socket_.set(zmq::sockopt::rcvhwm, kQueuedMessages);
  // A connection that broke has lost messages; a new one would only hide that.
  socket_.set(zmq::sockopt::reconnect_ivl, both() ? kNever : -1);
  // Queue for a connection only: what is queued goes with it, and nothing lingers for a lost peer.
  // With this, and with an interval of -1, ZeroMQ drops with the connection what had come on it.
  socket_.set(zmq::sockopt::immediate, both() ? 0 : 1);
  if (options_.curve) {
    set_curve_client(socket_, options_.curve->own, options_.curve->server);
    monitor_ = std::make_unique<SocketMonitor>(context_, socket_, kConnectionEvents);
  }
  socket_.connect(options_.endpoint);
}

PeerConnection::State PeerConnection::look() {
  while (watched()) {
    const auto event = monitor_->next();
    if (!event) {
      break;
    }
    note(*event);
  }
  if (end_ && end_->complete(Deadline::Clock::now())) {
    end_.reset();
    fail({.kind = ZMQ_EVENT_DISCONNECTED});
  }
  if (!watched()) {
    monitor_.reset();  // its sockets count: a context has a limited number
  }
  if (next_attempt_ && Deadline::Clock::now() >= *next_attempt_) {
    next_attempt_.reset();
    connect();
  }
  return state_;
}

void PeerConnection::note(const SocketEvent& event) {
  if (event.kind == ZMQ_EVENT_CONNECTED) {
    reached_ = true;
    descriptor_ = event.value;
    file_ = OpenFile::at(descriptor_);
    return;
  }
  if (event.kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
    state_ = State::open;
    trouble_ = ChannelTrouble::none;
    reason_.clear();
    next_attempt_.reset();
    return;
  }
  if (state_ == State::broken || end_) {
    return;  // one failure has several events
  }
  if (open()) {
    end_.emplace(descriptor_, file_, Deadline::Clock::now());
  } else {
    fail(event);
  }
}

void PeerConnection::fail(const SocketEvent& event) {
  explain(event);
  state_ = State::broken;
  if (!both()) {
    next_attempt_ = Deadline::Clock::now() + pause_;
    pause_ = std::min(2 * pause_, kLongestRetryPause);
  }
}

void PeerConnection::explain(const SocketEvent& event) {
  if (open()) {
    trouble_ = ChannelTrouble::lost;
    reason_ = "the connection ended";
  } else if (event.kind == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) {
    trouble_ = ChannelTrouble::not_admitted;
    reason_ = fmt::format("it does not admit this {}'s key: its list of peers must name it",
                          options_.participant);
  } else if (event.kind == ZMQ_EVENT_CLOSED) {
    trouble_ = ChannelTrouble::unreachable;
    reason_ = "nobody listens at " + options_.endpoint;
  } else {
    trouble_ = ChannelTrouble::other_key;
    reason_ = fmt::format(
        "what listens at {} ended the handshake: it has another key than the list of peers says, "
        "is no {}, or has no room for this connection",
        options_.endpoint, options_.participant);
  }
}

bool PeerConnection::send(std::span<const std::byte> message) {
  return send(zmq::message_t(message.data(), message.size()));
}

bool PeerConnection::send(zmq::message_t message) { return try_send(socket_, message); }

bool PeerConnection::receive(zmq::message_t& message) { return try_receive(socket_, message); }

bool PeerConnection::writable() { return internal::writable(socket_); }

void PeerConnection::close() {
  monitor_.reset();
  next_attempt_.reset();
  socket_.close();
}

}  // namespace sotto::internal
