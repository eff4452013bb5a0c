#include "staged_transport.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "../internal/backoff.h"

namespace sotto::internal {
namespace {

/// How long a poll of the inner transport may keep us from looking at a copy.
constexpr std::chrono::microseconds kCopyWatch{50};
/// How long what the device has begun may take in the end.
constexpr std::chrono::seconds kCopyPatience{5};

}  // namespace

PinnedPool::~PinnedPool() {
  for (DeviceEvent event : events_) {
    device_.destroy(event);
  }
}

Result<DeviceMemory> PinnedPool::take(std::size_t bytes) {
  const auto fits = std::find_if(memory_.begin(), memory_.end(), [&](const DeviceMemory& memory) {
    return memory.bytes().size() >= bytes;
  });
  if (fits == memory_.end()) {
    return DeviceMemory::make(device_, DeviceRoom::pinned, bytes);
  }
  DeviceMemory taken = std::move(*fits);
  memory_.erase(fits);
  return taken;
}

Result<DeviceEvent> PinnedPool::take_event() {
  if (events_.empty()) {
    return device_.make_event();
  }
  DeviceEvent event = events_.back();
  events_.pop_back();
  return event;
}

StagedTransport::StagedTransport(std::unique_ptr<Transport> inner, std::shared_ptr<Device> device,
                                 DeviceStream stream)
    : device_(std::move(device)), stream_(stream), pool_(*device_), inner_(std::move(inner)) {}

StagedTransport::~StagedTransport() {
  (void)device_->use();  // failing, what follows finds the device lost as well
  Backoff backoff(Deadline::after(kCopyPatience));
  while (post_copied().ok() && !waiting_.empty() && backoff.wait()) {
  }
  // From here on nobody but the device touches pinned memory.
  inner_.reset();
  for (Exchanges* exchanges : {&waiting_, &posted_}) {
    while (!exchanges->empty()) {
      retire(std::move(exchanges->front()));
      exchanges->pop_front();
    }
  }
  do {
    reclaim();
  } while (!retired_.empty() && backoff.wait());
  for (Retired& stuck : retired_) {
    for (DeviceMemory& memory : stuck.pinned) {
      memory.abandon();
    }
  }
}

Status StagedTransport::post(const Exchange& exchange) {
  if (auto status = device_->use(); !status) {
    return status;
  }
  reclaim();
  Staged staged;
  staged.outer = exchange;
  if (auto status = stage(staged); !status) {
    retire(std::move(staged));
    return status;
  }
  if (staged.copied == nullptr && waiting_.empty()) {
    Status posted = inner_->post(staged.inner);
    if (posted.ok()) {
      posted_.push_back(std::move(staged));
    } else {
      retire(std::move(staged));
    }
    return posted;
  }
  waiting_.push_back(std::move(staged));
  return {};
}

Status StagedTransport::stage(Staged& staged) {
  staged.inner.tag = staged.outer.tag;
  staged.inner.sends.reserve(staged.outer.sends.size());
  staged.inner.receives.reserve(staged.outer.receives.size());
  staged.pinned.reserve(staged.outer.sends.size() + staged.outer.receives.size());
  bool copies = false;
  for (Send send : staged.outer.sends) {
    const auto memory = stand_in(staged, send.frame);
    if (!memory) {
      return memory.status();
    }
    if (!memory->empty()) {
      if (auto status = device_->copy(send.frame, memory->data(), stream_); !status) {
        return status;
      }
      send.frame = *memory;
      copies = true;
    }
    staged.inner.sends.push_back(send);
  }
  for (Receive receive : staged.outer.receives) {
    const auto memory = stand_in(staged, receive.buffer);
    if (!memory) {
      return memory.status();
    }
    if (!memory->empty()) {
      receive.buffer = *memory;
    }
    staged.inner.receives.push_back(receive);
  }
  if (!copies) {
    return {};
  }
  const auto event = pool_.take_event();
  if (!event) {
    return event.status();
  }
  staged.copied = *event;
  return device_->record(staged.copied, stream_);
}

Result<std::span<std::byte>> StagedTransport::stand_in(Staged& staged,
                                                       std::span<const std::byte> memory) {
  const auto on_device = device_->holds(memory.data());
  if (!on_device) {
    return on_device.status();
  }
  if (!*on_device) {
    return std::span<std::byte>();
  }
  auto pinned = pool_.take(memory.size());
  if (!pinned) {
    return pinned.status();
  }
  staged.pinned.push_back(std::move(*pinned));
  return staged.pinned.back().bytes().first(memory.size());
}

Status StagedTransport::post_copied() {
  while (!waiting_.empty()) {
    Staged& next = waiting_.front();
    if (next.copied != nullptr) {
      const auto copied = device_->passed(next.copied);
      if (!copied || !*copied) {
        return copied.status();
      }
    }
    if (Status posted = inner_->post(next.inner); !posted.ok()) {
      retire(std::move(next));
      waiting_.pop_front();
      return posted;
    }
    posted_.splice(posted_.end(), waiting_, waiting_.begin());
  }
  return {};
}

Result<TransportEvent> StagedTransport::poll(Deadline deadline) {
  if (auto status = device_->use(); !status) {
    return status;
  }
  for (;;) {
    if (auto status = post_copied(); !status) {
      return status;
    }
    reclaim();
    auto event = inner_->poll(waiting_.empty() ? deadline : deadline.or_after(kCopyWatch));
    if (!event.ok()) {
      if (event.status().fault() != Fault::deadline || deadline.expired()) {
        return event;
      }
      continue;
    }
    if (auto status = unstage(*event); !status) {
      return status;
    }
    return event;
  }
}

Status StagedTransport::unstage(const TransportEvent& event) {
  if (event.kind == TransportEvent::Kind::exchange_done) {
    if (const auto done = find(event.tag); done != posted_.end()) {
      retire(std::move(*done));
      posted_.erase(done);
    }
    return {};
  }
  const auto under_way =
      event.kind == TransportEvent::Kind::frame ? find(event.tag) : posted_.end();
  if (under_way == posted_.end()) {
    return {};
  }
  const auto& receives = under_way->outer.receives;
  const auto room = std::find_if(receives.begin(), receives.end(), [&](const Receive& receive) {
    return receive.from == event.peer;
  });
  const auto& stood_in =
      under_way->inner.receives[static_cast<std::size_t>(room - receives.begin())];
  return stood_in.buffer.data() == room->buffer.data()
             ? Status()
             : device_->copy(stood_in.buffer.first(event.bytes), room->buffer.data(), stream_);
}

void StagedTransport::retire(Staged staged) {
  if (staged.pinned.empty()) {
    return;
  }
  if (staged.copied == nullptr) {
    if (const auto event = pool_.take_event(); event.ok()) {
      staged.copied = *event;
    }
  }
  if (staged.copied != nullptr && device_->record(staged.copied, stream_).ok()) {
    retired_.push_back({std::move(staged.pinned), staged.copied});
    return;
  }
  // An event without a mark behind the last copies looks as if they were done.
  for (DeviceMemory& memory : staged.pinned) {
    memory.abandon();
  }
  if (staged.copied != nullptr) {
    pool_.give_back(staged.copied);
  }
}

void StagedTransport::reclaim() {
  while (!retired_.empty()) {
    Retired& oldest = retired_.front();
    if (const auto passed = device_->passed(oldest.copied); !passed.ok() || !*passed) {
      return;
    }
    pool_.give_back(oldest.copied);
    for (DeviceMemory& memory : oldest.pinned) {
      pool_.give_back(std::move(memory));
    }
    retired_.pop_front();
  }
}

StagedTransport::Exchanges::iterator StagedTransport::find(const ExchangeTag& tag) {
  return std::find_if(posted_.begin(), posted_.end(),
                      [&](const Staged& staged) { return staged.outer.tag == tag; });
}

}  // namespace sotto::internal
