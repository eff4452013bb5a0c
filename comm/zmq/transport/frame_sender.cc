#include "frame_sender.h"

#include <utility>

#include "../socket/socket.h"
#include "wire.h"

namespace sotto::internal {

FrameSender::FrameSender(zmq::context_t& context, Rank peer, const std::string& endpoint,
                         zmq::message_t hello, std::size_t frames_ahead,
                         std::optional<CurveClient> curve)
    : peer_(peer),
      dialer_(context, endpoint, std::move(curve)),
      hello_(std::move(hello)),
      frames_ahead_(static_cast<std::uint32_t>(frames_ahead)),
      credits_(frames_ahead_) {}

void FrameSender::look() {
  if (open_ && dialer_.look()) {
    greeted_ = false;
  }
}

bool FrameSender::credit(std::uint32_t count) {
  if (count > frames_ahead_ - credits_) {
    return false;
  }
  credits_ += count;
  return true;
}

bool FrameSender::offer(zmq::message_t message) { return try_send(dialer_.socket(), message); }

void FrameSender::pump(Ledger& ledger) {
  if (!open_) {
    return;
  }
  if (!greeted_) {
    zmq::message_t hello;
    hello.copy(hello_);  // another attempt may need it again
    if (!offer(std::move(hello))) {
      return;
    }
    greeted_ = true;
  }
  if (!dialer_.met()) {
    return;
  }
  if (owed_ > 0) {
    if (!offer(zmq_wire::make_credit(owed_))) {
      return;
    }
    owed_ = 0;
  }
  while (frame_ready()) {
    if (!writable(dialer_.socket())) {
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
    dialer_.socket().set(zmq::sockopt::linger, linger_ms);
    dialer_.close();
  }
}

}  // namespace sotto::internal
