// The notices with which the receiver of a connection tells the sender of its receives, where
// frames wait for them (TransportModel::on_demand): of each receive that is posted, and early of
// those that are foretold, for which the receiver then keeps a room.
//
// One thread at a time. Each function returns how many notices go to the sender by it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <sotto/base/exchange.h>
#include <sotto/base/receive_forecast.h>

namespace sotto {

class ReceiveNotices {
 public:
  /// Rooms for the frames of `rooms` receives that are not posted yet.
  explicit ReceiveNotices(std::size_t rooms) : forecast_(rooms) {}

  /// Whether the sender was told of the receive early, and its room is not emptied.
  bool foretold(const ExchangeTag& tag) const {
    return std::ranges::find(in_rooms_, tag) != in_rooms_.end();
  }
  /// A receive is about to be posted; `delivered` says whether its frame is in its room.
  std::size_t post(const ExchangeTag& tag, bool delivered) {
    std::size_t notices = 0;
    if (!foretold(tag)) {
      sent_.push_back(tag);
      ++notices;
    } else if (delivered) {
      notices += take(tag);
    }
    forecast_.post(tag);
    return notices + foretell();
  }
  /// The frame of a receive is the receiver's now: its room, if it has one, is empty.
  std::size_t take(const ExchangeTag& tag) {
    if (std::erase(in_rooms_, tag) == 0) {
      return 0;
    }
    forecast_.vacate();
    return foretell();
  }
  /// The first of the notices on their way has come to the sender.
  void heard() {
    demanded_.push_back(sent_.front());
    sent_.erase(sent_.begin());
  }
  /// Whether the sender knows of a receive, to which it now gives a frame.
  bool claim(const ExchangeTag& tag) {
    const auto known = std::ranges::find(demanded_, tag);
    if (known == demanded_.end()) {
      return false;
    }
    demanded_.erase(known);
    return true;
  }

 private:
  std::size_t foretell() {
    std::size_t notices = 0;
    while (const auto next = forecast_.next()) {
      in_rooms_.push_back(*next);
      sent_.push_back(*next);
      ++notices;
    }
    return notices;
  }

  ReceiveForecast forecast_;
  std::vector<ExchangeTag> in_rooms_;  ///< receives that were told of early, and have a room
  std::vector<ExchangeTag> sent_;      ///< receives with a notice on its way to the sender
  std::vector<ExchangeTag> demanded_;  ///< receives that the sender knows of, without a frame yet
};

}  // namespace sotto
