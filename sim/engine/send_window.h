// The messages that the receiver of a connection keeps room for, as the sender knows: one that the
// receiver has taken makes room for another once the sender has heard of it, a latency later.
//
// One thread at a time. Plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include <sotto/sim/network/lean_vector.h>
#include <sotto/sim/network/network.h>

namespace sotto {

class SendWindow {
 public:
  /// Room for `size` messages.
  explicit SendWindow(std::uint32_t size) : size_(size) {}

  std::uint32_t size() const { return size_; }

  /// Takes room for one more message. False when the sender knows of none: `next_notice` then says
  /// when that may change.
  bool enter(const Network& network, ConnectionId id) {
    if (out_ >= size_) {
      forget_heard(network, id);
    }
    full_ = out_ >= size_;
    out_ += full_ ? 0 : 1;
    return !full_;
  }
  /// The receiver takes a message now. Returns the time when the sender is to be told (heard), if a
  /// message waits for it.
  std::optional<SimTime> take(const Network& network, ConnectionId id) {
    taken_.push_back(network.now());
    if (full_) {
      return next_notice(network, id);
    }
    if (taken_.size() % kTakenKept == 0) {
      forget_heard(network, id);  // a window that is never full would keep all that it had
    }
    return {};
  }
  /// The time when the sender is to be told of the first message taken; empty where none is, or
  /// where that was returned before.
  std::optional<SimTime> next_notice(const Network& network, ConnectionId id) {
    if (taken_.empty() || notice_scheduled_) {
      return {};
    }
    notice_scheduled_ = true;
    return std::max(plus(taken_.front(), network.latency_back(id)), network.now());
  }
  /// The notice that next_notice gave a time for has come to the sender.
  void heard() { notice_scheduled_ = false; }

 private:
  /// Times of so many messages are kept before those that the sender has heard of are dropped.
  static constexpr std::size_t kTakenKept = 2;

  /// Counts the messages taken of which the sender has heard, and drops their times.
  void forget_heard(const Network& network, ConnectionId id) {
    const SimTime latest = network.now() - network.latency_back(id);
    auto heard = taken_.begin();  // one by one, as few are kept
    while (heard != taken_.end() && *heard <= latest) {
      ++heard;
    }
    out_ -= static_cast<std::uint32_t>(heard - taken_.begin());
    taken_.erase(taken_.begin(), heard);
  }

  LeanVector<SimTime> taken_;  ///< times of messages taken, until the sender has heard of them
  std::uint32_t size_;
  std::uint32_t out_ = 0;  ///< messages launched, and not known to the sender as taken
  bool full_ = false;      ///< a message waits until the sender hears of one taken
  bool notice_scheduled_ = false;
};

}  // namespace sotto
