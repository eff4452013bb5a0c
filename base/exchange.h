// The exchange: what an algorithm wants carried, and the unit that every transport posts.
//
// An exchange is all sends and all expected receives of one phase of one round. It owns nothing:
// the buffers belong to the algorithm that made it, and stay untouched (sends) or reserved
// (receives) from the post until the transport reports the exchange complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sotto/base/ids.h>

namespace sotto {

/// The most pieces that a model can be cut into (ExchangeTag::bucket); exchanges of groups of nodes
/// are numbered behind them.
inline constexpr std::uint32_t kMostBuckets = 4096;

/// Matches a send to its receive: equal on both sides, and used once in a run.
struct ExchangeTag {
  Round round = 0;
  std::uint16_t phase = 0;
  std::uint32_t bucket = 0;

  friend bool operator==(const ExchangeTag&, const ExchangeTag&) = default;
  friend auto operator<=>(const ExchangeTag&, const ExchangeTag&) = default;
};

/// One sealed frame (frame.h) for one peer.
struct Send {
  Rank to = 0;
  std::span<const std::byte> frame;
};

/// Room for one frame from one peer, at least as large as the largest that can be due.
struct Receive {
  Rank from = 0;
  std::span<std::byte> buffer;
  /// Length of the frame that came, at the front of the buffer; 0: it is missing. Written by what
  /// carries the exchange.
  std::size_t bytes = 0;

  std::span<const std::byte> frame() const { return buffer.first(bytes); }
};

/// At most one send and one receive a peer; both sorted by peer. An exchange may have no peers at
/// all (one node alone): it is then complete as soon as it is posted.
struct Exchange {
  ExchangeTag tag;
  std::vector<Send> sends;
  std::vector<Receive> receives;
};

}  // namespace sotto
