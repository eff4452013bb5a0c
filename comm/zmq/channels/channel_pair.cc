#include "channel_pair.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace sotto::internal {
namespace {

/// Chunks that go out before others have their turn.
constexpr int kChunksAtOnce = 16;
/// Gaps between chunks that make a silence.
constexpr int kGapsOfSilence = 4;
/// Signs of life in a timeout.
constexpr int kSigns = 4;

}  // namespace

std::optional<ChannelPair::Clock::duration> ChannelPair::broken_silence(Time now) const {
  const auto gap = in_.arriving() ? chunk_gap_ : Clock::duration::zero();
  const auto allowed = std::max<Clock::duration>(options_.timeout, kGapsOfSilence * gap);
  return now - heard_ > allowed ? std::optional(allowed) : std::nullopt;
}

Result<std::optional<std::vector<std::byte>>> ChannelPair::take(const channel_wire::Chunk& chunk,
                                                                Time now) {
  if (in_.arriving()) {
    chunk_gap_ = now - chunk_heard_;
  }
  chunk_heard_ = now;
  return in_.take(chunk);
}

Status ChannelPair::add(Rank peer, ChannelMessage message) {
  if (out_.holds(message)) {
    return {};
  }
  const auto most = options_.max_queued_bytes;
  if (out_.queued_bytes() + message.size() > most ||
      out_.queued_messages() * channel_wire::kMessageCost > most) {
    return {Fault::backlog,
            fmt::format("rank {} takes nothing, and {} messages of {} bytes in all wait for it",
                        peer, out_.queued_messages(), out_.queued_bytes())};
  }
  out_.add(std::move(message));
  return {};
}

bool ChannelPair::receipt_due(std::uint64_t held, Time now) const {
  return in_.news(held) || now - receipted_ >= options_.timeout / kSigns;
}

void ChannelPair::send(WayOut& way, std::uint64_t held, Time now) {
  if (receipt_due(held, now)) {
    const auto receipt = in_.receipt(held);
    if (way.send(receipt)) {
      in_.said(receipt);
      receipted_ = now;
    }
  }
  for (int i = 0; i < kChunksAtOnce && out_.ready() && way.writable(); ++i) {
    if (!way.send(out_.next())) {
      return;
    }
    out_.gone(now);
  }
}

}  // namespace sotto::internal
