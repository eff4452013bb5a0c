// What goes to one peer: frames in chunks as its credit allows, and the credit that it is owed.
//
// Thread safety: none. Ownership: owns its socket; frames stay the caller's until the ledger has
// them as sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>

#include <zmq.hpp>

#include "../internal/ledger.h"

namespace sotto::internal {

class Outbox {
 public:
  /// Connects to the peer's listener; `hello` goes out as the first message.
  Outbox(zmq::context_t& context, Rank peer, const std::string& endpoint, zmq::message_t hello);

  /// True once the hello is on its way.
  bool greeted() const { return !hello_; }

  void add(const ExchangeTag& tag, std::span<const std::byte> frame) {
    frames_.push_back({tag, frame, 0});
  }
  /// The peer consumed frames. False when it says more than it had.
  bool credit(std::uint32_t count);
  /// We consumed frames of the peer.
  void owe(std::size_t count) { owed_ += static_cast<std::uint32_t>(count); }

  /// True when something could go out as soon as the socket takes it.
  bool pending() const {
    return open_ && (hello_ || owed_ > 0 || frame_ready() || (leaving_ && !left_));
  }
  /// Gives the socket what it takes without waiting, and tells the ledger of frames handed over.
  void pump(Ledger& ledger);

  /// Drops what has not begun to go out and says goodbye; pump goes on until `!pending()`.
  void leave();
  /// What the socket holds is still sent, for so long at most.
  void close(int linger_ms);

  zmq::socket_t& socket() { return dealer_; }

 private:
  struct Outgoing {
    ExchangeTag tag;
    std::span<const std::byte> frame;
    std::size_t sent;
  };

  bool frame_ready() const {
    return !frames_.empty() && (frames_.front().sent > 0 || credits_ > 0);
  }
  bool offer(zmq::message_t message);

  const Rank peer_;
  zmq::socket_t dealer_;
  std::optional<zmq::message_t> hello_;  ///< until it is sent
  std::deque<Outgoing> frames_;
  std::uint32_t credits_;
  std::uint32_t owed_ = 0;
  bool open_ = true;
  bool leaving_ = false;
  bool left_ = false;
};

}  // namespace sotto::internal
