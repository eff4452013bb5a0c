#include "message_receiver.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace sotto::internal {
namespace {

/// Often enough for the sender to learn the link's rate, and seldom enough to cost nothing.
constexpr std::uint64_t kReceiptBytes = 64 << 10;

}  // namespace

Status MessageReceiver::begin(const channel_wire::Chunk& chunk) {
  if (chunk.number != number_ || chunk.offset != 0) {
    return {Fault::malformed, fmt::format("byte {} of message {} where message {} was to begin",
                                          chunk.offset, chunk.number, number_)};
  }
  if (chunk.total > max_message_bytes_) {
    return {Fault::malformed, fmt::format("a message of {} bytes where {} are taken at most",
                                          chunk.total, max_message_bytes_)};
  }
  const auto cost = channel_wire::cost_of(chunk.total);
  if (cost > said_.allowed - begun_) {
    return {Fault::unexpected, fmt::format("a message that costs {} where {} were left to it", cost,
                                           said_.allowed - begun_)};
  }
  begun_ += cost;
  arriving_ = true;
  total_ = chunk.total;
  message_.clear();
  message_.reserve(total_);
  return {};
}

Result<std::optional<std::vector<std::byte>>> MessageReceiver::take(
    const channel_wire::Chunk& chunk) {
  if (!arriving_) {
    if (auto begun = begin(chunk); !begun) {
      return begun;
    }
  }
  if (chunk.number != number_ || chunk.total != total_ || chunk.offset != message_.size()) {
    return Status(
        Fault::malformed,
        fmt::format("byte {} of message {} of {} bytes where byte {} of message {} of {} "
                    "was due",
                    chunk.offset, chunk.number, chunk.total, message_.size(), number_, total_));
  }
  message_.insert(message_.end(), chunk.bytes.begin(), chunk.bytes.end());
  received_ += chunk.bytes.size();
  if (message_.size() < total_) {
    return std::optional<std::vector<std::byte>>();
  }
  arriving_ = false;
  ++number_;
  return std::optional(std::exchange(message_, {}));
}

channel_wire::Receipt MessageReceiver::receipt(std::uint64_t held) const {
  const auto taken = held + (arriving_ ? channel_wire::cost_of(total_) : 0);
  const auto room = window() - std::min(window(), taken);
  return {.received = received_, .allowed = std::max(said_.allowed, begun_ + room)};
}

bool MessageReceiver::news(std::uint64_t held) const {
  const auto now = receipt(held);
  return now.received - said_.received >= kReceiptBytes ||
         now.allowed - said_.allowed >= window() / 8;
}

}  // namespace sotto::internal
