#include "peer_connection.h"

#include <algorithm>
#include <utility>

#include "../transport/wire.h"
#include "authenticator.h"
#include "socket.h"

namespace sotto::internal {
namespace {

/// Between two attempts: from kFirstDialPause, doubling up to kLongestDialPause.
constexpr std::chrono::milliseconds kFirstDialPause{20};
constexpr std::chrono::milliseconds kLongestDialPause{500};
/// Chunks that the socket holds: enough to keep a link busy, few enough to leave quickly.
constexpr int kQueuedDialChunks = 4;
constexpr int kDialEvents = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                            ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                            ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_DISCONNECTED |
                            ZMQ_EVENT_CLOSED;

}  // namespace

Dialer::Dialer(zmq::context_t& context, std::string endpoint, std::optional<CurveClient> curve)
    : context_(context),
      endpoint_(std::move(endpoint)),
      curve_(std::move(curve)),
      met_(!curve_),
      pause_(kFirstDialPause) {
  dial();
}

void Dialer::dial() {
  monitor_.reset();
  socket_ = zmq::socket_t(context_, zmq::socket_type::dealer);
  set_common_options(socket_, endpoint_, zmq_wire::kMaxMessageBytes);
  socket_.set(zmq::sockopt::sndhwm, kQueuedDialChunks);
  // A connection that broke has lost frames; a new one would only hide that.
  socket_.set(zmq::sockopt::reconnect_ivl, -1);
  // Queue for a connection only: what is queued goes with it, and nothing lingers for a lost peer.
  socket_.set(zmq::sockopt::immediate, 1);
  if (curve_) {
    set_curve_client(socket_, curve_->own, curve_->server);
    monitor_ = std::make_unique<SocketMonitor>(context_, socket_, kDialEvents);
  }
  socket_.connect(endpoint_);
}

bool Dialer::look() {
  while (watching()) {
    const auto event = monitor_->next();
    if (!event) {
      break;
    }
    note(*event);
  }
  if (met_) {
    monitor_.reset();  // its sockets count: a context has so many
  }
  if (!next_attempt_ || Deadline::Clock::now() < *next_attempt_) {
    return false;
  }
  next_attempt_.reset();
  dial();
  return true;
}

void Dialer::note(const SocketEvent& event) {
  if (event.kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
    met_ = true;
    reason_.clear();
    next_attempt_.reset();
    return;
  }
  if (next_attempt_) {
    return;  // one failure has several events
  }
  if (event.kind == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) {
    reason_ = "it does not admit this node's key: its list of peers must name it";
  } else if (event.kind == ZMQ_EVENT_CLOSED) {
    reason_ = "nobody listens at " + endpoint_;
  } else {
    reason_ = "what listens at " + endpoint_ +
              " ended the handshake: it has another key than the list of peers says, or is no node";
  }
  next_attempt_ = Deadline::Clock::now() + pause_;
  pause_ = std::min(2 * pause_, kLongestDialPause);
}

void Dialer::close() {
  monitor_.reset();
  next_attempt_.reset();
  socket_.close();
}

}  // namespace sotto::internal
