// Predicts the next receives from one peer, so that the peer may be told of them before they are
// posted.
//
// If a frame waits until its sender has heard of its receive, as over Gloo, it costs two latencies.
// But algorithms ask for equal frames round after round: receives posted in three rounds that lie
// equally far apart, under one phase and bucket, will be posted as far on again. Where a round has
// more receives than there are rooms, as an all-reduce of many phases, each room that becomes free
// is for the receive that will be posted next. After a wrong forecast its room is lost for good,
// and its phase and bucket are forecast no more.
//
// ReceiveForecast lies in base because comm, which carries frames, sim, which simulates that, and
// study, which predicts it, have to foretell alike.
//
// One thread at a time; owns nothing of the frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <sotto/base/exchange.h>

namespace sotto {

class ReceiveForecast {
 public:
  /// Rooms for frames of up to `frame_bytes` from one of `peers` that are heard: 16 and 8 MiB at
  /// most, for what a latency matters to is short; and 64 of all peers together, or one of each.
  static std::size_t rooms_for(std::size_t frame_bytes, std::size_t peers);

  /// No more than `rooms` at a time are foretold and not vacated.
  explicit ReceiveForecast(std::size_t rooms) : rooms_(rooms) {}

  /// Notes that a receive is posted; `next` may have more after it.
  void post(const ExchangeTag& tag);
  /// A frame has left its room for the receive that was posted; `next` may have more after it.
  void vacate() { --taken_; }
  /// The tag of a later receive to announce to the peer now, which takes a room; none: nothing is
  /// foretold, or no room is free.
  std::optional<ExchangeTag> next();

 private:
  /// The receives of one phase and bucket.
  struct Series {
    std::optional<Round> last;  ///< posted
    Round stride = 0;           ///< between the last two
    std::optional<Round> foretold;
    bool told = false;  ///< to the peer, who has a room for it
    bool failed = false;
  };

  std::size_t rooms_;
  std::size_t taken_ = 0;
  std::map<std::pair<std::uint16_t, std::uint32_t>, Series> series_;
  std::vector<ExchangeTag> foretold_;  ///< and not told, in the order in which they will be posted
};

}  // namespace sotto
