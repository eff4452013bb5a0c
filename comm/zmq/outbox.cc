#include "outbox.h"

#include <utility>

#include "../internal/backends.h"
#include "socket.h"
#include "wire.h"

namespace sotto::internal {
namespace {

/// Chunks that the socket holds: enough to keep a link busy, few enough to leave quickly.
constexpr int kQueuedChunks = 4;

}  // namespace

Outbox::Outbox(zmq::context_t& context, Rank peer, const std::string& endpoint,
               zmq::message_t hello)
    : peer_(peer),
      dealer_(context, zmq::socket_type::dealer),
      hello_(std::move(hello)),
      credits_(kEarlyFrames) {
  set_common_options(dealer_, endpoint, zmq_wire::kMaxMessageBytes);
  dealer_.set(zmq::sockopt::sndhwm, kQueuedChunks);
  // A connection that broke has lost frames; a new one would only hide that.
  dealer_.set(zmq::sockopt::reconnect_ivl, -1);
  // Queue for a connection only: what is queued goes with it, and nothing lingers for a lost peer.
  dealer_.set(zmq::sockopt::immediate, 1);
  dealer_.connect(endpoint);
}

bool Outbox::credit(std::uint32_t count) {
  if (count > kEarlyFrames - credits_) {
    return false;
  }
  credits_ += count;
  return true;
}

bool Outbox::offer(zmq::message_t message) { return try_send(dealer_, message); }

void Outbox::pump(Ledger& ledger) {
  if (!open_) {
    return;
  }
  if (hello_) {
    if (!try_send(dealer_, *hello_)) {
      return;
    }
    hello_.reset();
  }
  if (owed_ > 0) {
    if (!offer(zmq_wire::make_credit(owed_))) {
      return;
    }
    owed_ = 0;
  }
  while (frame_ready()) {
    if (!writable(dealer_)) {
      return;
    }
    Outgoing& next = frames_.front();
    credits_ -= next.sent == 0 ? 1 : 0;
    std::size_t taken = 0;
    if (!offer(zmq_wire::make_chunk(next.tag, next.frame, next.sent, &taken))) {
      credits_ += next.sent == 0 ? 1 : 0;
      return;
    }
    next.sent += taken;
    if (next.sent == next.frame.size()) {
      ledger.sent(peer_, next.tag);
      frames_.pop_front();
    }
  }
  if (leaving_ && !left_) {
    left_ = offer(zmq_wire::make_bye());
  }
}

void Outbox::leave() {
  if (hello_) {
    close(0);  // never met: there is nobody to take leave of
  }
  frames_.clear();
  leaving_ = true;
}

void Outbox::close(int linger_ms) {
  if (open_) {
    open_ = false;
    frames_.clear();
    dealer_.set(zmq::sockopt::linger, linger_ms);
    dealer_.close();
  }
}

}  // namespace sotto::internal
