#include "frame_receiver.h"

#include <cstring>

#include <fmt/format.h>

#include <sotto/base/frame.h>

#include "../../internal/fault_text.h"

namespace sotto::internal {
namespace {

Status too_long(std::size_t bytes, std::size_t room, const ExchangeTag& tag) {
  return {Fault::malformed,
          fmt::format("sent {} bytes where {} were due at most ({})", bytes, room, describe(tag))};
}

}  // namespace

Status FrameReceiver::begin(const zmq_wire::Chunk& chunk, Ledger& ledger) {
  const auto& [tag, piece] = chunk;
  if (piece.offset != 0) {
    return {Fault::malformed, fmt::format("began a frame at byte {}", piece.offset)};
  }
  if (piece.total < kFrameHeaderBytes) {
    return {Fault::malformed,
            fmt::format("sent a frame of {} bytes, shorter than its header", piece.total)};
  }
  if (piece.total > max_frame_bytes_) {
    return too_long(piece.total, max_frame_bytes_, tag);
  }
  if (const auto room = ledger.room(peer_, tag)) {
    if (piece.total > room->size()) {
      return too_long(piece.total, room->size(), tag);
    }
    target_ = room->first(piece.total);
    direct_ = true;
  } else if (ledger.stale(peer_, tag)) {
    return {Fault::unexpected, fmt::format("sent a frame that nobody awaits ({})", describe(tag))};
  } else if (early_.size() >= frames_ahead_) {
    return {Fault::unexpected, fmt::format("sent more than {} frames ahead", frames_ahead_)};
  } else {
    early_.push_back({tag, FrameVector(piece.total), false});
    target_ = early_.back().frame;
    direct_ = false;
  }
  tag_ = tag;
  progress_.begin(piece.total);
  return {};
}

Result<std::size_t> FrameReceiver::take(const zmq_wire::Chunk& chunk, Ledger& ledger) {
  if (!progress_.under_way()) {
    if (auto begun = begin(chunk, ledger); !begun) {
      return begun;
    }
  }
  const Piece& piece = chunk.piece;
  if (chunk.tag != tag_ || !progress_.awaits(piece)) {
    return Status(
        Fault::malformed,
        fmt::format("byte {} of a frame of {} where byte {} of {} was due ({})", piece.offset,
                    piece.total, progress_.arrived(), progress_.total(), describe(tag_)));
  }
  std::memcpy(target_.data() + piece.offset, piece.bytes.data(), piece.bytes.size());
  if (!progress_.take(piece)) {
    return std::size_t{0};
  }
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
