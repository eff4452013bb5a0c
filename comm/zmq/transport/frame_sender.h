// What goes to one peer: frames in chunks as its credit allows, over one or several connections,
// and the credit that it is owed.
//
// Thread safety: none. Ownership: owns its sockets; frames stay the caller's until the ledger has
// them as sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <zmq.hpp>

#include "../../internal/ledger.h"
#include "../socket/peer_connection.h"

namespace sotto::internal {

class FrameSender {
 public:
  /// Connects to the peer's listener, in plain text or with keys, once for each of `hellos`, which
  /// go out as the first messages. The peer lets us be `frames_ahead` frames ahead of what it
  /// consumed.
  FrameSender(zmq::context_t& context, Rank peer, const std::string& endpoint,
              std::vector<zmq::message_t> hellos, std::size_t frames_ahead,
              const std::optional<CurveClient>& curve);

  /// True once every hello is on its way to a peer that took us.
  bool greeted() const;
  /// Takes in what befell the connections, and tries again when that is due.
  void look();
  /// What keeps us from the peer, if anything is known.
  const std::string& trouble() const;

  void add(const ExchangeTag& tag, std::span<const std::byte> frame) {
    frames_.push_back({tag, frame, 0});
  }
  /// The peer consumed frames. False when it says more than it had.
  bool credit(std::uint32_t count);
  /// We consumed frames of the peer.
  void owe(std::size_t count) { owed_ += static_cast<std::uint32_t>(count); }

  /// True when something could go out as soon as a socket takes it.
  bool pending() const;
  /// Gives the sockets what they take without waiting, and tells the ledger of frames handed over.
  void pump(Ledger& ledger);

  /// Drops what has not begun to go out and says goodbye; pump goes on until `!pending()`.
  void leave();
  /// Messages that the sockets hold are still sent, for at most this long.
  void close(int linger_ms);

  /// Sockets that something is to go out of, and where news of connections come from: for a poll.
  void await(const std::function<void(zmq::socket_t& socket, short events)>& wait_for);
  /// When the next attempt to connect is due; none when there is none.
  std::optional<Deadline::Clock::time_point> next_attempt() const;

 private:
  struct Outgoing {
    ExchangeTag tag;
    std::span<const std::byte> frame;
    std::size_t sent;
  };
  struct Stream {
    Stream(zmq::context_t& context, const std::string& endpoint, zmq::message_t first,
           std::optional<CurveClient> curve);

    bool ready() const { return greeted && connection.open(); }

    PeerConnection connection;
    zmq::message_t hello;
    bool greeted = false;  ///< the socket has the hello
    bool left = false;     ///< the socket has the goodbye
  };

  bool frame_ready() const {
    return !frames_.empty() && (frames_.front().sent > 0 || credits_ > 0);
  }
  bool pending(const Stream& stream) const;
  bool greet(Stream& stream);
  /// The next stream in turn that takes a message; null when none does.
  Stream* writable();

  const Rank peer_;
  /// The connections to the peer. All carry chunks; the first carries credit besides.
  std::vector<std::unique_ptr<Stream>> streams_;
  std::size_t turn_ = 0;  ///< the stream of the next chunk, where it takes one
  std::deque<Outgoing> frames_;
  const std::uint32_t frames_ahead_;
  std::uint32_t credits_;
  std::uint32_t owed_ = 0;
  bool open_ = true;
  bool leaving_ = false;
};

}  // namespace sotto::internal
