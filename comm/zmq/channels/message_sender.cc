#include "message_sender.h"

#include <algorithm>
#include <span>

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
      static_cast<double>(channel_wire::kMostChunkBytes)));
  last_ = now;
  if (now - since_ > timeout_) {  // older times count less and less
    since_ += (now - since_) / 2;
    bytes_ /= 2;
  }
}

bool MessageSender::holds(const ChannelMessage& message) const {
  const auto equal = [&](const ChannelMessage& queued) {
    return queued.body.data() == message.body.data() && queued.body.size() == message.body.size() &&
           queued.head == message.head;
  };
  return !message.body.empty() && std::ranges::any_of(queue_, equal);
}

bool MessageSender::ready() const {
  return !queue_.empty() &&
         (begun_ || channel_wire::cost_of(queue_.front().size()) <= receipt_.allowed - spent_);
}

channel_wire::Chunk MessageSender::next() const {
  check(ready(), "a chunk that the peer takes");
  const ChannelMessage& message = queue_.front();
  const std::size_t head = message.head.size();
  const std::size_t end = std::min(message.size(), offset_ + sizer_.chunk_bytes());
  const auto run = [&](std::span<const std::byte> bytes, std::size_t from, std::size_t to) {
    return from < to ? bytes.subspan(from, to - from) : std::span<const std::byte>();
  };
  channel_wire::Chunk chunk{.number = number_,
                            .piece = {.total = message.size(),
                                      .offset = offset_,
                                      .bytes = run(message.head, offset_, std::min(end, head))},
                            .rest = {}};
  if (end > head) {
    chunk.rest = run(message.body, std::max(offset_, head) - head, end - head);
  }
  return chunk;
}

void MessageSender::gone(Clock::time_point now) {
  const channel_wire::Chunk chunk = next();
  const std::uint64_t total = chunk.piece.total;
  if (!begun_) {
    begun_ = true;
    spent_ += channel_wire::cost_of(total);
  }
  if (chunks_bytes_ == receipt_.received) {
    sizer_.begin(now);
  }
  offset_ += chunk.size();
  chunks_bytes_ += chunk.size();
  if (offset_ == total) {
    sent_bytes_ += total;
    queued_bytes_ -= total;
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
