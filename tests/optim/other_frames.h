// An exchange that is complete, with other frames than those that came, for tests.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <sotto/base/exchange.h>

namespace sotto::test {

using Bytes = std::vector<std::byte>;

inline Bytes copy_of(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

/// Copies the frames of an exchange, as the algorithm may overwrite its buffers, and lets some be
/// exchanged for others.
class OtherFrames {
 public:
  explicit OtherFrames(const Exchange& exchange) : shown_(exchange) {
    for (const Receive& receive : exchange.receives) {
      right_.push_back(copy_of(receive.frame()));
      frames_.push_back(right_.back());
    }
  }

  std::size_t count() const { return right_.size(); }
  Rank from(std::size_t edge) const { return shown_.receives[edge].from; }
  /// The frame that came from from(edge).
  const Bytes& right(std::size_t edge) const { return right_[edge]; }
  void show(std::size_t edge, Bytes frame) { frames_[edge] = std::move(frame); }
  const Bytes& shown(std::size_t edge) const { return frames_[edge]; }
  void show_right(std::size_t edge) { frames_[edge] = right_[edge]; }
  /// The exchange with the frames that are shown.
  const Exchange& exchange() {
    for (std::size_t edge = 0; edge < frames_.size(); ++edge) {
      shown_.receives[edge].buffer = frames_[edge];
      shown_.receives[edge].bytes = frames_[edge].size();
    }
    return shown_;
  }

 private:
  Exchange shown_;
  std::vector<Bytes> right_;
  std::vector<Bytes> frames_;
};

/// `exchange` with one frame that came, in its first receive.
inline Exchange with_frame(Exchange exchange, std::span<std::byte> frame) {
  exchange.receives.at(0).buffer = frame;
  exchange.receives.at(0).bytes = frame.size();
  return exchange;
}

}  // namespace sotto::test
