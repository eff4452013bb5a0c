#include "frame_sender.h"

#include <utility>

#include "../socket/socket.h"
#include "wire.h"

namespace sotto::internal {

FrameSender::FrameSender(zmq::context_t& context, Rank peer, const std::string& endpoint,
                         zmq::message_t hello, std::size_t frames_ahead,
                         std::optional<CurveClient> curve)
    : peer_(peer),
      connection_(context, {.endpoint = endpoint,
                            .max_message_bytes = zmq_wire::kMostMessageBytes,
                            .curve = std::move(curve),
                            .directions = Directions::one,
                            .participant = "node"}),
      hello_(std::move(hello)),
      frames_ahead_(static_cast<std::uint32_t>(frames_ahead)),
      credits_(frames_ahead_) {}

void FrameSender::look() {
  if (!open_) {
    return;
  }
  const int attempt = connection_.attempts();
  connection_.look();
  greeted_ = greeted_ && connection_.attempts() == attempt;
}

bool FrameSender::credit(std::uint32_t count) {
  if (count > frames_ahead_ - credits_) {
    return false;
  }
  credits_ += count;
  return true;
}

void FrameSender::pump(Ledger& ledger) {
  if (!open_) {
    return;
  }
  if (!greeted_) {
    zmq::message_t hello;
    hello.copy(hello_);  // another attempt may need it again
    if (!connection_.send(std::move(hello))) {
      return;
    }
    greeted_ = true;
  }
  if (!connection_.open()) {
    return;
  }
  if (owed_ > 0) {
    if (!connection_.send(zmq_wire::make_credit(owed_))) {
      return;
    }
    owed_ = 0;
  }
  while (frame_ready()) {
    if (!connection_.writable()) {
      return;
    }
    Outgoing& next = frames_.front();
    credits_ -= next.sent == 0 ? 1 : 0;
    const auto piece = piece_at(next.frame, next.sent, zmq_wire::kChunkBytes);
    if (!connection_.send(zmq_wire::make_chunk({next.tag, piece}))) {
      credits_ += next.sent == 0 ? 1 : 0;
      return;
    }
    next.sent += piece.bytes.size();
    if (piece.last()) {
      ledger.sent(peer_, next.tag);
      frames_.pop_front();
    }
  }
  if (leaving_ && !left_) {
    left_ = connection_.send(zmq_wire::make_bye());
  }
}

void FrameSender::leave() {
  if (!greeted()) {
    close(0);  // never met: there is nobody to take leave of
  }
  frames_.clear();
  leaving_ = true;
}

void FrameSender::close(int linger_ms) {
  if (open_) {
    open_ = false;
    frames_.clear();
    connection_.linger(linger_ms);
    connection_.close();
  }
}

}  // namespace sotto::internal
