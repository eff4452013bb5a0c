#include "frame_receiver.h"

#include <algorithm>
#include <cstring>
#include <utility>

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

bool FrameReceiver::Partial::awaits(const Piece& piece, std::size_t piece_bytes) const {
  if (piece.total != total) {
    return false;
  }
  if (pieces.empty()) {
    return piece.offset == arrived;
  }
  return piece.offset < total && piece.offset % piece_bytes == 0 &&
         !pieces[piece.offset / piece_bytes] &&
         piece.bytes.size() == std::min<std::uint64_t>(piece_bytes, total - piece.offset);
}

void FrameReceiver::Partial::take(const Piece& piece, std::size_t piece_bytes) {
  std::memcpy(target.data() + piece.offset, piece.bytes.data(), piece.bytes.size());
  arrived += piece.bytes.size();
  if (!pieces.empty()) {
    pieces[piece.offset / piece_bytes] = true;
  }
}

Status FrameReceiver::begin(const zmq_wire::Chunk& chunk, Ledger& ledger) {
  const auto& [tag, piece] = chunk;
  if (in_order() && piece.offset != 0) {
    return {Fault::malformed, fmt::format("began a frame at byte {}", piece.offset)};
  }
  if (piece.total < kFrameHeaderBytes) {
    return {Fault::malformed,
            fmt::format("sent a frame of {} bytes, shorter than its header", piece.total)};
  }
  if (piece.total > max_frame_bytes_) {
    return too_long(piece.total, max_frame_bytes_, tag);
  }
  Partial next{.tag = tag, .total = piece.total};
  if (const auto room = ledger.room(peer_, tag)) {
    if (piece.total > room->size()) {
      return too_long(piece.total, room->size(), tag);
    }
    next.target = room->first(piece.total);
  } else if (ledger.stale(peer_, tag)) {
    return {Fault::unexpected, fmt::format("sent a frame that nobody awaits ({})", describe(tag))};
  } else if (std::ranges::count_if(partials_, &Partial::early) >=
             static_cast<std::ptrdiff_t>(frames_ahead_)) {
    return {Fault::unexpected, fmt::format("sent more than {} frames ahead", frames_ahead_)};
  } else {
    next.own = FrameVector(piece.total);
    next.target = next.own;
  }
  if (!in_order()) {
    const std::size_t size = zmq_wire::piece_bytes(piece.total, streams_);
    next.pieces.resize((piece.total + size - 1) / size);
  }
  partials_.push_back(std::move(next));  // the frame's bytes stay where they are
  return {};
}

FrameReceiver::Partials::iterator FrameReceiver::under_way(const zmq_wire::Chunk& chunk) {
  return std::ranges::find_if(partials_, [&](const Partial& partial) {
    // In order nothing else may come before a frame is whole.
    return !partial.whole() && (in_order() || partial.tag == chunk.tag);
  });
}

Result<std::size_t> FrameReceiver::take(const zmq_wire::Chunk& chunk, Ledger& ledger) {
  const Piece& piece = chunk.piece;
  const std::size_t size = zmq_wire::piece_bytes(piece.total, streams_);
  auto partial = under_way(chunk);
  if (partial == partials_.end()) {
    if (auto begun = begin(chunk, ledger); !begun.ok()) {
      return begun;
    }
    partial = std::prev(partials_.end());
  }
  if (!in_order() && !partial->awaits(piece, size)) {
    return Status(Fault::malformed,
                  fmt::format("a piece of {} bytes at byte {} of a frame of {}, which is there "
                              "already, or cut wrongly ({})",
                              piece.bytes.size(), piece.offset, piece.total, describe(chunk.tag)));
  }
  if (chunk.tag != partial->tag || !partial->awaits(piece, size)) {
    return Status(
        Fault::malformed,
        fmt::format("byte {} of a frame of {} where byte {} of {} was due ({})", piece.offset,
                    piece.total, partial->arrived, partial->total, describe(partial->tag)));
  }
  partial->take(piece, size);
  if (!partial->whole()) {
    return std::size_t{0};
  }
  if (partial->early()) {
    return match(ledger);
  }
  ledger.received(peer_, partial->tag, partial->total);
  partials_.erase(partial);
  return std::size_t{1};
}

Result<std::size_t> FrameReceiver::match(Ledger& ledger) {
  std::size_t matched = 0;
  for (auto early = partials_.begin(); early != partials_.end();) {
    const auto room =
        early->early() && early->whole() ? ledger.room(peer_, early->tag) : std::nullopt;
    if (!room) {
      ++early;
      continue;
    }
    if (early->own.size() > room->size()) {
      return too_long(early->own.size(), room->size(), early->tag);
    }
    std::memcpy(room->data(), early->own.data(), early->own.size());
    ledger.received(peer_, early->tag, early->own.size());
    early = partials_.erase(early);
    ++matched;
  }
  return matched;
}

}  // namespace sotto::internal
