#include "timed_sends.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>

#include "../../../comm/internal/ledger.h"

namespace sotto::test {

TimedSends::TimedSends(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {
  // A frame that is held back lets later exchanges overtake its own.
  if (!transport_info(inner_->name()).any_order) {
    refuse("transport", inner_->name(),
           "it carries exchanges only whole, so that single frames cannot be held back; use gloo");
  }
}

Status TimedSends::post(const ExchangeTag& tag, std::vector<Receive> receives,
                        std::vector<TimedSend> sends) {
  const auto now = Deadline::Clock::now();
  Exchange first{.tag = tag, .sends = {}, .receives = std::move(receives)};
  std::erase_if(sends, [&](const TimedSend& one) {
    if (one.release > now) {
      return false;
    }
    first.sends.push_back(one.send);
    return true;
  });
  if (auto posted = inner_->post(first); !posted) {
    return posted;
  }
  parts_[tag] = 1 + sends.size();
  for (const TimedSend& one : sends) {
    waiting_.emplace(one.release, Waiting{tag, one.send});
  }
  return {};
}

void TimedSends::release_due() {
  while (!waiting_.empty() && waiting_.begin()->first <= Deadline::Clock::now()) {
    const Waiting due = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    // A peer that is gone is reported as an event of the inner transport.
    (void)inner_->post({.tag = due.tag, .sends = {due.send}, .receives = {}});
  }
}

bool TimedSends::holds_frame_for(Rank peer) const {
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [&](const auto& entry) { return entry.second.send.to == peer; });
}

Result<TransportEvent> TimedSends::poll(Deadline deadline) {
  for (;;) {
    release_due();
    auto event =
        inner_->poll(waiting_.empty() ? deadline : deadline.or_at(waiting_.begin()->first));
    if (event.ok()) {
      if (event->kind == TransportEvent::Kind::peer_lost) {
        event->needed |= holds_frame_for(event->peer);
      }
      if (event->kind != TransportEvent::Kind::exchange_done) {
        return event;
      }
      const auto parts = parts_.find(event->tag);
      if (--parts->second == 0) {
        parts_.erase(parts);
        return event;
      }
    } else if (event.status().fault() != Fault::deadline || deadline.expired()) {
      return waiting_.empty() ? event
                              : event.status().with_context(
                                    fmt::format("{} frames still held back", waiting_.size()));
    }
  }
}

}  // namespace sotto::test
