#include "message_sender.h"

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/check.h>

namespace sotto::internal {
namespace {

/// Chunks in a timeout.
constexpr double kChunksHeard = 8;

}  // namespace

void ChunkSizer::arrived(std::uint64_t bytes, Clock::time_point now) {
  const auto rate = [&](std::uint64_t count, Clock::time_point from) {
    const std::chrono::duration<double> took =
        std::max<Clock::duration>(now - from, std::chrono::milliseconds(1));
    return static_cast<double>(count) / took.count();
  };
  // Receipts that waited behind what goes the other way come all at once: the mean tells then. The
  // last ones tell when the link has become slow.
  bytes_ += bytes;
  const std::chrono::duration<double> room = timeout_;
  const double fit =
      std::min(rate(bytes_, since_), rate(bytes, last_)) * room.count() / kChunksHeard;
  // At most twice as long at once: the first bytes go into buffers, not over the link.
  chunk_bytes_ = static_cast<std::size_t>(std::clamp(
      std::min(fit, 2.0 * static_cast<double>(chunk_bytes_)), static_cast<double>(kLeastChunkBytes),
      static_cast<double>(channel_wire::kMaxChunkBytes)));
  last_ = now;
  if (now - since_ > timeout_) {  // older times count less and less
    since_ += (now - since_) / 2;
    bytes_ /= 2;
  }
}

bool MessageSender::ready() const {
  return !queue_.empty() &&
         (begun_ || channel_wire::cost_of(queue_.front().size()) <= receipt_.allowed - spent_);
}

channel_wire::Chunk MessageSender::next() const {
  check(ready(), "a chunk that the peer takes");
  const auto& message = queue_.front();
  const auto bytes = std::min(sizer_.chunk_bytes(), message.size() - offset_);
  return {.number = number_,
          .total = message.size(),
          .offset = offset_,
          .bytes = std::span(message).subspan(offset_, bytes)};
}

void MessageSender::gone(Clock::time_point now) {
  const auto chunk = next();
  if (!begun_) {
    begun_ = true;
    spent_ += channel_wire::cost_of(chunk.total);
  }
  if (chunks_bytes_ == receipt_.received) {
    sizer_.begin(now);
  }
  offset_ += chunk.bytes.size();
  chunks_bytes_ += chunk.bytes.size();
  if (offset_ == chunk.total) {
    sent_bytes_ += chunk.total;
    queued_bytes_ -= chunk.total;
    queue_.pop_front();
    ++number_;
    offset_ = 0;
    begun_ = false;
  }
}

Status MessageSender::take(const channel_wire::Receipt& receipt, Clock::time_point now) {
  if (receipt.received > chunks_bytes_ || receipt.received < receipt_.received ||
      receipt.allowed < receipt_.allowed) {
    return {Fault::malformed,
            fmt::format("a receipt for {} bytes and an allowance of {}, where {} were sent and {} "
                        "and {} said before",
                        receipt.received, receipt.allowed, chunks_bytes_, receipt_.received,
                        receipt_.allowed)};
  }
  if (receipt.received > receipt_.received) {
    sizer_.arrived(receipt.received - receipt_.received, now);
  }
  receipt_ = receipt;
  return {};
}

}  // namespace sotto::internal
