#include "early_receives.h"

#include <exception>
#include <utility>

namespace sotto::internal {

EarlyReceives::EarlyReceives(Rank peer, Reports& reports, std::size_t frame_bytes, std::size_t most,
                             Start start)
    : peer_(peer),
      reports_(reports),
      frame_bytes_(frame_bytes),
      start_(std::move(start)),
      forecast_(most) {}

EarlyReceiveBuffer* EarlyReceives::find(const ExchangeTag& tag) {
  const auto found = std::ranges::find_if(buffers_, [&](const auto& buffer) {
    return buffer->taken && slot_of(buffer->tag) == slot_of(tag);
  });
  return found == buffers_.end() ? nullptr : found->get();
}

EarlyReceiveBuffer* EarlyReceives::at(const std::byte* memory) {
  const auto found = std::ranges::find_if(
      buffers_, [&](const auto& buffer) { return buffer->memory.data() == memory; });
  return found == buffers_.end() ? nullptr : found->get();
}

void EarlyReceives::posted(const ExchangeTag& tag) {
  forecast_.post(tag);
  start_foretold();
}

void EarlyReceives::start_foretold() {
  while (const auto next = forecast_.next()) {
    start_one(*next);
  }
}

void EarlyReceives::start_one(const ExchangeTag& tag) {
  auto free = std::ranges::find_if(buffers_, [](const auto& buffer) { return !buffer->taken; });
  if (free == buffers_.end()) {
    try {
      buffers_.push_back(std::make_unique<EarlyReceiveBuffer>(peer_, reports_, frame_bytes_));
    } catch (const std::exception&) {
      forecast_.vacate();  // no memory, or no thread: the frame waits for its receive
      return;
    }
    free = buffers_.end() - 1;
  }
  EarlyReceiveBuffer& buffer = **free;
  buffer.tag = tag;
  buffer.taken = true;
  start_(tag, buffer.memory, buffer.waiter);
}

bool EarlyReceives::hand_over(EarlyReceiveBuffer& buffer) {
  const auto frame = std::span(buffer.memory).first(*buffer.frame_bytes);
  if (frame.size() > buffer.posted->size()) {
    return false;
  }
  std::ranges::copy(frame, buffer.posted->begin());
  release(buffer);
  return true;
}

void EarlyReceives::release(EarlyReceiveBuffer& buffer) {
  buffer.taken = false;
  buffer.frame_bytes.reset();
  buffer.posted.reset();
  forecast_.vacate();
}

void EarlyReceives::stop() {
  for (const auto& buffer : buffers_) {
    buffer->waiter.stop();
  }
}

}  // namespace sotto::internal
