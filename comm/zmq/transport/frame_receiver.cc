#include "frame_receiver.h"

#include <cstring>

#include <fmt/format.h>

#include <sotto/base/frame.h>

namespace sotto::internal {
namespace {

Status too_long(std::size_t bytes, std::size_t room, const ExchangeTag& tag) {
  return {Fault::malformed,
          fmt::format("sent {} bytes where {} were due at most ({})", bytes, room, describe(tag))};
}

}  // namespace

Status FrameReceiver::begin(const zmq_wire::Chunk& chunk, Ledger& ledger) {
  if (chunk.offset != 0) {
    return {Fault::malformed, fmt::format("began a frame at byte {}", chunk.offset)};
  }
  if (chunk.total < kFrameHeaderBytes) {
    return {Fault::malformed,
            fmt::format("sent a frame of {} bytes, shorter than its header", chunk.total)};
  }
  if (chunk.total > max_frame_bytes_) {
    return too_long(chunk.total, max_frame_bytes_, chunk.tag);
  }
  if (const auto room = ledger.room(peer_, chunk.tag)) {
    if (chunk.total > room->size()) {
      return too_long(chunk.total, room->size(), chunk.tag);
    }
    target_ = room->first(chunk.total);
    direct_ = true;
  } else if (ledger.stale(peer_, chunk.tag)) {
    return {Fault::unexpected,
            fmt::format("sent a frame that nobody awaits ({})", describe(chunk.tag))};
  } else if (early_.size() >= frames_ahead_) {
    return {Fault::unexpected, fmt::format("sent more than {} frames ahead", frames_ahead_)};
  } else {
    early_.push_back({chunk.tag, FrameVector(chunk.total), false});
    target_ = early_.back().frame;
    direct_ = false;
  }
  arriving_ = true;
  tag_ = chunk.tag;
  arrived_ = 0;
  return {};
}

Result<std::size_t> FrameReceiver::take(const zmq_wire::Chunk& chunk, Ledger& ledger) {
  if (!arriving_) {
    if (auto begun = begin(chunk, ledger); !begun) {
      return begun;
    }
  }
  if (chunk.tag != tag_ || chunk.total != target_.size() || chunk.offset != arrived_) {
    return Status(Fault::malformed,
                  fmt::format("byte {} of a frame of {} where byte {} of {} was due ({})",
                              chunk.offset, chunk.total, arrived_, target_.size(), describe(tag_)));
  }
  std::memcpy(target_.data() + arrived_, chunk.bytes.data(), chunk.bytes.size());
  arrived_ += chunk.bytes.size();
  if (arrived_ < target_.size()) {
    return std::size_t{0};
  }
  arriving_ = false;
  if (direct_) {
    ledger.received(peer_, tag_, target_.size());
    return std::size_t{1};
  }
  early_.back().whole = true;
  return match(ledger);
}

Result<std::size_t> FrameReceiver::match(Ledger& ledger) {
  std::size_t matched = 0;
  for (auto early = early_.begin(); early != early_.end();) {
    const auto room = early->whole ? ledger.room(peer_, early->tag) : std::nullopt;
    if (!room) {
      ++early;
      continue;
    }
    if (early->frame.size() > room->size()) {
      return too_long(early->frame.size(), room->size(), early->tag);
    }
    std::memcpy(room->data(), early->frame.data(), early->frame.size());
    ledger.received(peer_, early->tag, early->frame.size());
    early = early_.erase(early);
    ++matched;
  }
  return matched;
}

}  // namespace sotto::internal
