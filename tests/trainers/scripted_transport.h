// A transport that plays back events, for tests of what is above one.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <sotto/comm/transport.h>

namespace sotto::test {

/// The only neighbour.
inline constexpr Rank kPeer = 7;

/// A frame of so many bytes has come.
inline TransportEvent frame(std::size_t bytes, Rank from = kPeer) {
  return {TransportEvent::Kind::frame, {}, from, bytes, {}};
}
/// The exchange is complete.
inline TransportEvent done() { return {TransportEvent::Kind::exchange_done, {}, -1, 0, {}}; }
/// The connection to the peer is gone.
inline TransportEvent lost(Rank peer, bool needed) {
  return {TransportEvent::Kind::peer_lost, {}, peer, 0, "connection reset", needed};
}

/// Plays back events, under the tag that was posted last; when there are none left it waits out
/// every deadline.
class ScriptedTransport final : public Transport {
 public:
  /// Plays these, one after the other.
  explicit ScriptedTransport(std::deque<TransportEvent> events) : events_(std::move(events)) {}
  /// Holds events back from now on, or no longer.
  void hold(bool held) { held_ = held; }
  /// No event is left.
  bool played_out() const { return left_ == 0; }
  std::string_view name() const override { return "script"; }
  Status post(const Exchange& exchange) override {
    tag_ = exchange.tag;
    return {};
  }
  void interrupt() override { interrupted_ = true; }
  Result<TransportEvent> poll(Deadline deadline) override {
    if (events_.empty() || held_) {
      while (!deadline.expired()) {
        if (interrupted_.exchange(false)) {
          return TransportEvent{TransportEvent::Kind::interrupted, {}, -1, 0, {}};
        }
        if (!events_.empty() && !held_) {
          return play();
        }
        std::this_thread::yield();
      }
      return Status(Fault::deadline, "round 0: rank 7 awaited");
    }
    return play();
  }

 private:
  TransportEvent play() {
    TransportEvent event = events_.front();
    event.tag = tag_;
    events_.pop_front();
    left_ = events_.size();
    return event;
  }

  std::deque<TransportEvent> events_;
  ExchangeTag tag_;
  std::atomic<bool> interrupted_{false};
  std::atomic<bool> held_{false};
  std::atomic<std::size_t> left_{events_.size()};
};

}  // namespace sotto::test
