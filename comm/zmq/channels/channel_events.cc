#include "channel_events.h"

#include <algorithm>
#include <utility>

#include "channel_wire.h"

namespace sotto::internal {

std::uint64_t ChannelEvents::held(Rank peer) const {
  const auto found = waiting_.find(peer);
  return found == waiting_.end() ? 0 : found->second.held;
}

bool ChannelEvents::known(Rank peer) const {
  const auto found = waiting_.find(peer);
  return found == waiting_.end() || found->second.changes == 0;
}

void ChannelEvents::up(Rank peer) {
  ++waiting_[peer].changes;
  events_.push_back({.kind = ChannelEvent::Kind::up, .peer = peer});
}

void ChannelEvents::message(Rank peer, std::vector<std::byte> message) {
  waiting_[peer].held += channel_wire::cost_of(message.size());
  events_.push_back(
      {.kind = ChannelEvent::Kind::message, .peer = peer, .message = std::move(message)});
}

void ChannelEvents::down(Rank peer, std::string reason) {
  const auto last = std::find_if(events_.rbegin(), events_.rend(),
                                 [&](const ChannelEvent& event) { return event.peer == peer; });
  if (last != events_.rend() && last->kind == ChannelEvent::Kind::up) {
    events_.erase(std::next(last).base());
    --waiting_[peer].changes;
    return;
  }
  ++waiting_[peer].changes;
  events_.push_back({.kind = ChannelEvent::Kind::down, .peer = peer, .reason = std::move(reason)});
}

void ChannelEvents::forget(Rank peer) {
  std::erase_if(events_, [&](const ChannelEvent& event) {
    return event.peer == peer && event.kind == ChannelEvent::Kind::message;
  });
  waiting_[peer].held = 0;
}

std::optional<ChannelEvent> ChannelEvents::take() {
  if (events_.empty()) {
    return std::nullopt;
  }
  ChannelEvent event = std::move(events_.front());
  events_.pop_front();
  Waiting& waiting = waiting_[event.peer];
  if (event.kind == ChannelEvent::Kind::message) {
    waiting.held -= channel_wire::cost_of(event.message.size());
  } else {
    --waiting.changes;
  }
  return event;
}

}  // namespace sotto::internal
