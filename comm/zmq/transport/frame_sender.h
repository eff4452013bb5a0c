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

#include "../../internal/ledger.h"
#include "../socket/peer_connection.h"

namespace sotto::internal {

class FrameSender {
 public:
  /// Connects to the peer's listener, in plain text or with keys; `hello` goes out as the first
  /// message. The peer lets us be `frames_ahead` frames ahead of what it consumed.
  FrameSender(zmq::context_t& context, Rank peer, const std::string& endpoint, zmq::message_t hello,
              std::size_t frames_ahead, std::optional<CurveClient> curve);

  /// True once the hello is on its way to a peer that took us.
  bool greeted() const { return greeted_ && connection_.open(); }
  /// Takes in what befell the connection, and tries again when that is due.
  void look();
  /// What keeps us from the peer, if anything is known.
  const std::string& trouble() const { return connection_.reason(); }

  void add(const ExchangeTag& tag, std::span<const std::byte> frame) {
    frames_.push_back({tag, frame, 0});
  }
  /// The peer consumed frames. False when it says more than it had.
  bool credit(std::uint32_t count);
  /// We consumed frames of the peer.
  void owe(std::size_t count) { owed_ += static_cast<std::uint32_t>(count); }

  /// True when something could go out as soon as the socket takes it.
  bool pending() const {
    return open_ && (!greeted_ ||
                     (connection_.open() && (owed_ > 0 || frame_ready() || (leaving_ && !left_))));
  }
  /// Gives the socket what it takes without waiting, and tells the ledger of frames handed over.
  void pump(Ledger& ledger);

  /// Drops what has not begun to go out and says goodbye; pump goes on until `!pending()`.
  void leave();
  /// Messages that the socket holds are still sent, for at most this long.
  void close(int linger_ms);

  zmq::socket_t& socket() { return connection_.socket(); }
  /// Where news of the connection come from, and when the next attempt is due; null and none when
  /// there is nothing to wait for.
  zmq::socket_t* monitor() { return connection_.monitor(); }
  std::optional<Deadline::Clock::time_point> next_attempt() const {
    return connection_.next_attempt();
  }

 private:
  struct Outgoing {
    ExchangeTag tag;
    std::span<const std::byte> frame;
    std::size_t sent;
  };

  bool frame_ready() const {
    return !frames_.empty() && (frames_.front().sent > 0 || credits_ > 0);
  }

  const Rank peer_;
  PeerConnection connection_;
  zmq::message_t hello_;
  bool greeted_ = false;  ///< the socket has the hello
  std::deque<Outgoing> frames_;
  const std::uint32_t frames_ahead_;
  std::uint32_t credits_;
  std::uint32_t owed_ = 0;
  bool open_ = true;
  bool leaving_ = false;
  bool left_ = false;
};

}  // namespace sotto::internal
