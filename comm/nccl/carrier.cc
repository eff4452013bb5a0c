#include "carrier.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/frame.h>

#include "../internal/backoff.h"
#include "../internal/fault_text.h"
#include "../internal/ledger.h"

namespace sotto::internal {
namespace {

FrameCounts count(const Exchange& exchange, Rank peer) {
  FrameCounts counts;
  for (const Send& send : exchange.sends) {
    counts.sent += send.to == peer ? 1 : 0;
  }
  for (const Receive& receive : exchange.receives) {
    counts.received += receive.from == peer ? 1 : 0;
  }
  return counts;
}

bool includes(const Exchange& exchange, Rank peer) {
  const FrameCounts counts = count(exchange, peer);
  return counts.sent + counts.received > 0;
}

void add_to(FrameCounts& sum, const FrameCounts& more) {
  sum.sent += more.sent;
  sum.received += more.received;
}

}  // namespace

Result<std::unique_ptr<Carrier>> Carrier::make(std::shared_ptr<Device> device,
                                               std::shared_ptr<NcclApi> api,
                                               Communicator communicator,
                                               const std::map<Rank, std::size_t>& to,
                                               const std::map<Rank, std::size_t>& from) {
  std::unique_ptr<Carrier> carrier(new Carrier(std::move(device), std::move(api), communicator));
  if (auto status = carrier->allocate(to, from); !status.ok()) {
    carrier->stop(Deadline::after({}));
    return status;
  }
  return carrier;
}

Carrier::~Carrier() {
  check(communicator_ == nullptr, "a carrier is stopped before it goes");
  for (const Lane& lane : lanes_) {
    if (lane.done != nullptr) {
      device_->destroy(lane.done);
    }
  }
  if (stream_ != nullptr) {
    device_->destroy(stream_);
  }
}

/// All of it now: an allocation may wait for the device, which would wait for other nodes' groups.
Status Carrier::allocate(const std::map<Rank, std::size_t>& to,
                         const std::map<Rank, std::size_t>& from) {
  auto stream = device_->make_stream();
  if (!stream) {
    return stream.status();
  }
  stream_ = *stream;
  for (Lane& lane : lanes_) {
    auto event = device_->make_event();
    if (!event) {
      return event.status();
    }
    lane.done = *event;
    for (const auto& [peers, slots] : {std::pair(&to, &lane.to), std::pair(&from, &lane.from)}) {
      for (const auto& [peer, bytes] : *peers) {
        auto slot = make_slot(bytes);
        if (!slot) {
          return slot.status();
        }
        slots->emplace(peer, std::move(*slot));
      }
    }
  }
  return {};
}

Result<Carrier::Slot> Carrier::make_slot(std::size_t bytes) {
  auto host = DeviceMemory::make(*device_, DeviceRoom::pinned, bytes);
  if (!host) {
    return host.status();
  }
  auto device = DeviceMemory::make(*device_, DeviceRoom::device, bytes);
  if (!device) {
    return device.status();
  }
  return Slot{std::move(*host), std::move(*device)};
}

Result<bool> Carrier::advance() {
  bool moved = false;
  if (!running_.empty()) {
    const auto settled = api_->settled(communicator_);
    if (!settled) {
      return settled.status();
    }
    Running& newest = running_.back();
    if (!newest.launched && *settled) {
      if (auto status = follow(newest); !status.ok()) {
        return status;
      }
      newest.launched = true;
      moved = true;
    }
  }
  while (!running_.empty() && running_.front().launched) {
    const auto passed = device_->passed(lanes_[running_.front().lane].done);
    if (!passed) {
      return passed.status();
    }
    if (!*passed) {
      break;
    }
    finish();
    moved = true;
  }
  const bool free = running_.size() < kLanes && (running_.empty() || running_.back().launched);
  if (free && !waiting_.empty() && !missed_next() && announced(waiting_.front())) {
    Exchange next = std::move(waiting_.front());
    waiting_.pop_front();
    if (auto status = begin(std::move(next)); !status.ok()) {
      return status;
    }
    moved = true;
  }
  return moved;
}

bool Carrier::announced(const Exchange& exchange) const {
  return std::all_of(exchange.receives.begin(), exchange.receives.end(),
                     [&](const Receive& receive) {
                       const auto found = announced_.find(receive.from);
                       return found != announced_.end() && !found->second.empty();
                     });
}

Status Carrier::begin(Exchange exchange) {
  const std::size_t number = groups_++ % kLanes;
  Lane& lane = lanes_[number];
  running_.push_back({.exchange = std::move(exchange), .incoming = {}, .lane = number});
  const Exchange& group = running_.back().exchange;
  std::vector<Incoming>& incoming = running_.back().incoming;
  incoming.reserve(group.receives.size());
  for (const Receive& receive : group.receives) {
    const auto on_device = device_->holds(receive.buffer.data());
    if (!on_device) {
      return on_device.status();
    }
    incoming.push_back({announced_.at(receive.from).front(), *on_device});
    announced_.at(receive.from).pop_front();
  }
  std::vector<std::span<const std::byte>> messages;
  messages.reserve(group.sends.size());
  for (const Send& send : group.sends) {
    const auto message = stage(send, lane.to.at(send.to));
    if (!message) {
      return message.status();
    }
    messages.push_back(*message);
  }
  Status status = api_->begin_group();
  if (!status.ok()) {
    return status;
  }
  for (std::size_t i = 0; i < messages.size() && status.ok(); ++i) {
    status = api_->send(messages[i], group.sends[i].to, communicator_, stream_);
  }
  for (std::size_t i = 0; i < group.receives.size() && status.ok(); ++i) {
    const Receive& receive = group.receives[i];
    status = api_->receive(landing(receive, lane.from.at(receive.from), incoming[i]), receive.from,
                           communicator_, stream_);
  }
  const Status ended = api_->end_group();
  return status.ok() ? ended : status;
}

Result<std::span<const std::byte>> Carrier::stage(const Send& send, const Slot& slot) {
  const auto on_device = device_->holds(send.frame.data());
  if (!on_device) {
    return on_device.status();
  }
  if (*on_device) {
    return send.frame;
  }
  const auto pinned = slot.host.bytes().first(send.frame.size());
  std::memcpy(pinned.data(), send.frame.data(), send.frame.size());
  const auto staged = slot.device.bytes().first(send.frame.size());
  if (auto status = device_->copy(pinned, staged.data(), stream_); !status.ok()) {
    return status;
  }
  return std::span<const std::byte>(staged);
}

std::span<std::byte> Carrier::landing(const Receive& receive, const Slot& slot,
                                      const Incoming& incoming) {
  const bool there = incoming.on_device && incoming.bytes <= receive.buffer.size();
  return (there ? receive.buffer : slot.device.bytes()).first(incoming.bytes);
}

Status Carrier::follow(const Running& group) {
  const Lane& lane = lanes_[group.lane];
  for (std::size_t i = 0; i < group.incoming.size(); ++i) {
    const Receive& receive = group.exchange.receives[i];
    const Slot& slot = lane.from.at(receive.from);
    const auto frame = landing(receive, slot, group.incoming[i]);
    const bool stays = group.incoming[i].on_device;
    const auto seen = stays ? frame.first(kFrameHeaderBytes) : frame;  // by the host
    if (auto status = device_->copy(seen, slot.host.bytes().data(), stream_); !status.ok()) {
      return status;
    }
  }
  return device_->record(lane.done, stream_);
}

Result<std::size_t> Carrier::unpack(const ExchangeTag& tag, const Receive& receive,
                                    const Slot& slot, const Incoming& incoming) {
  const std::size_t bytes = incoming.bytes;
  const auto frame = slot.host.bytes().first(bytes);
  const auto stated = announced_frame_bytes(frame, receive.buffer.size());
  if (!stated) {
    return stated.status();
  }
  if (*stated != bytes) {
    return Status(Fault::malformed,
                  fmt::format("announced {} bytes for a frame of {}", bytes, *stated));
  }
  if (const ExchangeTag theirs = announced_tag(frame); theirs != tag) {
    return Status(Fault::unexpected, fmt::format("sent its frame of {} where that of {} was due",
                                                 describe(theirs), describe(tag)));
  }
  if (!incoming.on_device) {
    std::memcpy(receive.buffer.data(), frame.data(), bytes);
  }
  return bytes;
}

void Carrier::finish() {
  Running group = std::move(running_.front());
  running_.pop_front();
  Carried carried;
  for (const Send& send : group.exchange.sends) {
    ++done_[send.to].sent;
  }
  carried.frames.reserve(group.incoming.size());
  for (std::size_t i = 0; i < group.incoming.size(); ++i) {
    const Receive& receive = group.exchange.receives[i];
    const Slot& slot = lanes_[group.lane].from.at(receive.from);
    ++done_[receive.from].received;
    carried.frames.push_back(
        {receive.from, unpack(group.exchange.tag, receive, slot, group.incoming[i])});
  }
  carried.exchange = std::move(group.exchange);
  carried_.push_back(std::move(carried));
}

std::optional<Carried> Carrier::take() {
  if (carried_.empty()) {
    return std::nullopt;
  }
  std::optional<Carried> carried(std::move(carried_.front()));
  carried_.pop_front();
  return carried;
}

bool Carrier::holds(Rank peer) const {
  return std::any_of(running_.begin(), running_.end(),
                     [&](const Running& group) { return includes(group.exchange, peer); });
}

FrameCounts Carrier::done(Rank peer) const {
  const auto found = done_.find(peer);
  return found == done_.end() ? FrameCounts{} : found->second;
}

FrameCounts Carrier::committed(Rank peer) const {
  FrameCounts counts = done(peer);
  for (const Running& group : running_) {
    add_to(counts, count(group.exchange, peer));
  }
  for (const Exchange& exchange : waiting_) {
    add_to(counts, count(exchange, peer));
  }
  return counts;
}

/// A peer that left before its part in `exchange`, with all that runs in front of it.
std::optional<Rank> Carrier::missed(const Exchange& exchange) const {
  for (const auto& [peer, theirs] : limits_) {
    const FrameCounts wanted = count(exchange, peer);
    if (wanted.sent + wanted.received == 0) {
      continue;
    }
    FrameCounts counts = done(peer);
    for (const Running& group : running_) {
      if (&group.exchange == &exchange) {
        break;
      }
      add_to(counts, count(group.exchange, peer));
    }
    add_to(counts, wanted);
    if ((wanted.sent > 0 && counts.sent > theirs.received) ||
        (wanted.received > 0 && counts.received > theirs.sent)) {
      return peer;
    }
  }
  return std::nullopt;
}

std::optional<Rank> Carrier::missed_next() const {
  return waiting_.empty() ? std::nullopt : missed(waiting_.front());
}

std::optional<Rank> Carrier::missed_now() const {
  return running_.empty() ? std::nullopt : missed(running_.front().exchange);
}

void Carrier::drop(Rank peer) {
  std::erase_if(waiting_, [&](Exchange& exchange) {
    std::erase_if(exchange.sends, [&](const Send& send) { return send.to == peer; });
    std::erase_if(exchange.receives, [&](const Receive& receive) { return receive.from == peer; });
    return exchange.sends.empty() && exchange.receives.empty();
  });
}

Result<bool> Carrier::flush() {
  if (!flushing_) {
    flushing_ = true;
    if (auto status = api_->finalize(communicator_); !status.ok()) {
      return status;
    }
  }
  auto settled = api_->settled(communicator_);
  flushed_ = settled.ok() && *settled;
  return settled;
}

void Carrier::stop(Deadline deadline) {
  if (communicator_ == nullptr) {
    return;
  }
  if (flushed_) {
    api_->destroy(communicator_);
  } else {
    api_->abort(communicator_);
  }
  communicator_ = nullptr;
  waiting_.clear();
  running_.clear();
  // What the stream still holds are copies; a mark behind them tells when they are done.
  DeviceEvent mark = lanes_.front().done;
  bool quiet = mark == nullptr || !device_->record(mark, stream_).ok();
  for (Backoff backoff(deadline); !quiet;) {
    const auto passed = device_->passed(mark);
    quiet = !passed.ok() || *passed;
    if (!quiet && !backoff.wait()) {
      break;
    }
  }
  for (Lane& lane : lanes_) {
    for (auto* slots : {&lane.to, &lane.from}) {
      for (auto& [peer, slot] : *slots) {
        if (!quiet) {
          slot.host.abandon();
          slot.device.abandon();
        }
      }
      slots->clear();
    }
  }
}

}  // namespace sotto::internal
