// The exchanges of one node that are under way in a simulation: posted, and not closed.
//
// One thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <sotto/base/exchange.h>
#include <sotto/sim/network/lean_vector.h>

#include "frame_copies.h"

namespace sotto {

struct OpenExchange {
  std::uint64_t number = 0;  ///< number of the exchange, in the order of posting
  Exchange exchange;
  LeanVector<CopiedFrame> frames;  ///< frames that came, by receive; none of timing only
  double elements = 0;             ///< elements that the frames received so far encode
  std::uint32_t awaited = 0;       ///< receives without their frame
  std::uint32_t unsent = 0;        ///< sends with a frame that is still in the sender's hands
  bool used = false;
  bool complete() const { return used && awaited == 0 && unsent == 0; }
};

class OpenExchanges {
 public:
  std::size_t size() const { return used_; }

  /// An exchange to fill in, which counts as open from now on. Its vectors are those of one that
  /// was closed.
  OpenExchange& open() {
    ++used_;
    OpenExchange* const unused =
        std::find_if(all_.begin(), all_.end(), [](const OpenExchange& one) { return !one.used; });
    OpenExchange& opened = unused == all_.end() ? all_.emplace_back() : *unused;
    opened.used = true;
    return opened;
  }
  /// The exchange under a tag; null: none.
  OpenExchange* find(const ExchangeTag& tag) {
    if (used_ == 0) {
      return nullptr;
    }
    OpenExchange* const found =
        std::find_if(all_.begin(), all_.end(),
                     [&](const OpenExchange& one) { return one.used && one.exchange.tag == tag; });
    return found == all_.end() ? nullptr : found;
  }
  /// The complete exchange that was posted first; null: none is complete.
  const OpenExchange* complete() const {
    if (used_ == 0) {
      return nullptr;
    }
    const OpenExchange* first = nullptr;
    for (const OpenExchange& one : all_) {
      if (one.complete() && (first == nullptr || one.number < first->number)) {
        first = &one;
      }
    }
    return first;
  }
  /// `exchange`, which is one of these, to write to.
  OpenExchange& own(const OpenExchange& exchange) {
    return all_[static_cast<std::size_t>(&exchange - all_.begin())];
  }
  void close(const OpenExchange& exchange) {
    own(exchange).used = false;
    --used_;
  }
  /// Closes all, whose frames go back to `copies`.
  void close_all(FrameCopies& copies) {
    for (OpenExchange& one : all_) {
      one.used = false;
      for (CopiedFrame& frame : one.frames) {
        copies.give_back(frame);
      }
      one.frames.clear();
    }
    used_ = 0;
  }
  /// Calls `visit(receive)` for each receive without its frame.
  template <typename Visit>
  void for_each_awaited(const Visit& visit) const {
    for (const OpenExchange& one : all_) {
      for (const Receive& receive : one.exchange.receives) {
        if (one.used && receive.bytes == 0) {
          visit(receive);
        }
      }
    }
  }

 private:
  LeanVector<OpenExchange> all_;  ///< unused entries are kept for the next
  std::uint32_t used_ = 0;
};

}  // namespace sotto
