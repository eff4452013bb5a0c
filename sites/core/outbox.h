// The messages of a site that wait to be sent, in their order.
//
// A building block of Site, not for users. A plain value.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <sotto/sites/core/parcel_stream.h>
#include <sotto/sites/core/places.h>

namespace sotto::sites {

/// A message that may go out now.
struct Released {
  std::size_t peer = 0;                 ///< place of the receiver in the list of peers
  std::vector<std::byte> message = {};  ///< bytes to send; of a parcel, those before its payload
  Payload payload = {};                 ///< bytes that follow; null: none
  bool hang_up = false;                 ///< no message: close the channel; the two may meet again

  /// All bytes of the message.
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> all = message;
    if (payload) {
      all.insert(all.end(), payload->begin(), payload->end());
    }
    return all;
  }
};

class Outbox {
 public:
  /// Appends a message for this peer, which ends with the payload, if there is one.
  void send(std::size_t peer, std::vector<std::byte> message, Payload payload = {}) {
    waiting_.push_back(
        {.peer = peer, .message = std::move(message), .payload = std::move(payload)});
  }
  /// Asks that the channel to this peer is closed, after what waits for it is sent.
  void hang_up(std::size_t peer) { waiting_.push_back({.peer = peer, .hang_up = true}); }
  /// Drops what waits for this peer.
  void drop(std::size_t peer) {
    std::erase_if(waiting_, [&](const Released& one) { return one.peer == peer; });
  }
  /// Drops everything.
  void clear() { waiting_.clear(); }
  /// Peer k is at place[k] from now on; what waits for one at kNobody is dropped.
  void rearrange(std::span<const std::size_t> place) {
    std::erase_if(waiting_, [&](const Released& one) { return place[one.peer] == kNobody; });
    for (Released& one : waiting_) {
      one.peer = place[one.peer];
    }
  }
  /// Takes all messages out.
  std::vector<Released> take() { return std::exchange(waiting_, {}); }

 private:
  std::vector<Released> waiting_;
};

}  // namespace sotto::sites
