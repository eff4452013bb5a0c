#include "message_receiver.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace sotto::internal {
namespace {

/// Often enough for the sender to learn the link's rate, and seldom enough to cost little: each
/// receipt is encrypted, and wakes four threads.
constexpr std::uint64_t kReceiptBytes = 64 << 10;
/// Chunks of the present length in a receipt.
constexpr std::uint64_t kReceiptChunks = 4;

}  // namespace

Status MessageReceiver::begin(const channel_wire::Chunk& chunk) {
  if (chunk.number != number_ || chunk.piece.offset != 0) {
    return {Fault::malformed, fmt::format("byte {} of message {} where message {} was to begin",
                                          chunk.piece.offset, chunk.number, number_)};
  }
  if (chunk.piece.total > max_message_bytes_) {
    return {Fault::malformed, fmt::format("a message of {} bytes where {} are taken at most",
                                          chunk.piece.total, max_message_bytes_)};
  }
  const auto cost = channel_wire::cost_of(chunk.piece.total);
  if (cost > said_.allowed - begun_) {
    return {Fault::unexpected, fmt::format("a message that costs {} where {} were left to it", cost,
                                           said_.allowed - begun_)};
  }
  begun_ += cost;
  progress_.begin(chunk.piece.total);
  message_ = pool_ == nullptr ? std::vector<std::byte>() : pool_->take(chunk.piece.total);
  message_.reserve(chunk.piece.total);
  return {};
}

Result<std::optional<std::vector<std::byte>>> MessageReceiver::take(
    const channel_wire::Chunk& chunk) {
  if (!arriving()) {
    if (auto begun = begin(chunk); !begun) {
      return begun;
    }
  }
  const Piece& piece = chunk.piece;
  if (chunk.number != number_ || !progress_.awaits(piece)) {
    return Status(
        Fault::malformed,
        fmt::format("byte {} of message {} of {} bytes where byte {} of message {} of {} was due",
                    piece.offset, chunk.number, piece.total, progress_.arrived(), number_,
                    progress_.total()));
  }
  message_.insert(message_.end(), piece.bytes.begin(), piece.bytes.end());
  received_ += piece.bytes.size();
  chunk_bytes_ = piece.bytes.size();
  if (!progress_.take(piece)) {
    return std::optional<std::vector<std::byte>>();
  }
  ++number_;
  return std::optional(std::exchange(message_, {}));
}

channel_wire::Receipt MessageReceiver::receipt(std::uint64_t held) const {
  const auto taken = held + (arriving() ? channel_wire::cost_of(progress_.total()) : 0);
  const auto room = window() - std::min(window(), taken);
  return {.received = received_, .allowed = std::max(said_.allowed, begun_ + room)};
}

bool MessageReceiver::news(std::uint64_t held) const {
  const auto now = receipt(held);
  // The end of a message is confirmed at once, as nothing may follow for long.
  const auto enough =
      arriving() ? std::max(kReceiptBytes, kReceiptChunks * chunk_bytes_) : kReceiptBytes;
  return now.received - said_.received >= enough || now.allowed - said_.allowed >= window() / 8;
}

}  // namespace sotto::internal
