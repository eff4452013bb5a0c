#include "frame_sender.h"

#include <algorithm>
#include <utility>

#include "../socket/socket.h"
#include "wire.h"

namespace sotto::internal {

FrameSender::Stream::Stream(zmq::context_t& context, const std::string& endpoint,
                            zmq::message_t first, std::optional<CurveClient> curve)
    : connection(context, {.endpoint = endpoint,
                           .max_message_bytes = zmq_wire::kMostMessageBytes,
                           .curve = std::move(curve),
                           .directions = Directions::one,
                           .participant = "node"}),
      hello(std::move(first)) {}

FrameSender::FrameSender(zmq::context_t& context, Rank peer, const std::string& endpoint,
                         std::vector<zmq::message_t> hellos, std::size_t frames_ahead,
                         const std::optional<CurveClient>& curve)
    : peer_(peer),
      frames_ahead_(static_cast<std::uint32_t>(frames_ahead)),
      credits_(frames_ahead_) {
  for (zmq::message_t& hello : hellos) {
    streams_.push_back(std::make_unique<Stream>(context, endpoint, std::move(hello), curve));
  }
}

bool FrameSender::greeted() const {
  return std::ranges::all_of(streams_, [](const auto& stream) { return stream->ready(); });
}

void FrameSender::look() {
  if (!open_) {
    return;
  }
  for (const auto& stream : streams_) {
    const int attempt = stream->connection.attempts();
    stream->connection.look();
    stream->greeted = stream->greeted && stream->connection.attempts() == attempt;
  }
}

const std::string& FrameSender::trouble() const {
  const auto troubled = std::ranges::find_if(
      streams_, [](const auto& stream) { return !stream->connection.reason().empty(); });
  return troubled == streams_.end() ? streams_.front()->connection.reason()
                                    : (*troubled)->connection.reason();
}

bool FrameSender::credit(std::uint32_t count) {
  if (count > frames_ahead_ - credits_) {
    return false;
  }
  credits_ += count;
  return true;
}

bool FrameSender::pending(const Stream& stream) const {
  const bool credit_due = owed_ > 0 && &stream == streams_.front().get();
  return !stream.greeted ||
         (stream.connection.open() && (credit_due || frame_ready() || (leaving_ && !stream.left)));
}

bool FrameSender::pending() const {
  return open_ &&
         std::ranges::any_of(streams_, [this](const auto& stream) { return pending(*stream); });
}

bool FrameSender::greet(Stream& stream) {
  if (!stream.greeted) {
    zmq::message_t hello;
    hello.copy(stream.hello);  // another attempt may need it again
    stream.greeted = stream.connection.send(std::move(hello));
  }
  return stream.ready();
}

FrameSender::Stream* FrameSender::writable() {
  for (std::size_t k = 0; k < streams_.size(); ++k) {
    Stream& next = *streams_[turn_];
    turn_ = (turn_ + 1) % streams_.size();
    if (next.ready() && next.connection.writable()) {
      return &next;
    }
  }
  return nullptr;
}

void FrameSender::pump(Ledger& ledger) {
  if (!open_) {
    return;
  }
  for (const auto& stream : streams_) {
    greet(*stream);
  }
  Stream& first = *streams_.front();
  if (owed_ > 0 && first.ready() && first.connection.send(zmq_wire::make_credit(owed_))) {
    owed_ = 0;
  }
  while (frame_ready()) {
    Stream* const stream = writable();
    if (stream == nullptr) {
      return;
    }
    Outgoing& next = frames_.front();
    credits_ -= next.sent == 0 ? 1 : 0;
    const auto piece = piece_at(
        next.frame, next.sent,
        zmq_wire::piece_bytes(next.frame.size(), static_cast<std::uint8_t>(streams_.size())));
    if (!stream->connection.send(zmq_wire::make_chunk({next.tag, piece}))) {
      credits_ += next.sent == 0 ? 1 : 0;
      return;
    }
    next.sent += piece.bytes.size();
    if (piece.last()) {
      ledger.sent(peer_, next.tag);
      frames_.pop_front();
    }
  }
  for (const auto& stream : streams_) {
    if (leaving_ && !stream->left && stream->ready()) {
      stream->left = stream->connection.send(zmq_wire::make_bye());
    }
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
  if (!open_) {
    return;
  }
  open_ = false;
  frames_.clear();
  for (const auto& stream : streams_) {
    stream->connection.linger(linger_ms);
    stream->connection.close();
  }
}

void FrameSender::await(const std::function<void(zmq::socket_t& socket, short events)>& wait_for) {
  for (const auto& stream : streams_) {
    if (open_ && pending(*stream)) {
      wait_for(stream->connection.socket(), ZMQ_POLLOUT);
    }
    if (zmq::socket_t* monitor = stream->connection.monitor()) {
      wait_for(*monitor, ZMQ_POLLIN);
    }
  }
}

std::optional<Deadline::Clock::time_point> FrameSender::next_attempt() const {
  std::optional<Deadline::Clock::time_point> soonest;
  for (const auto& stream : streams_) {
    const auto next = stream->connection.next_attempt();
    if (next && (!soonest || *next < *soonest)) {
      soonest = next;
    }
  }
  return soonest;
}

}  // namespace sotto::internal
