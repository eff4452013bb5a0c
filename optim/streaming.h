// How the exchange of local steps is cut into fragments and delayed (wrappers/streamed_steps.h).
// Plain values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <sotto/base/ids.h>

namespace sotto {

/// How a node takes a fragment's new common model s in, having gone on from y to x meanwhile.
struct SyncMix {
  /// x ← x + (s − y): the steps that were made meanwhile stay.
  bool carry = false;
  /// α of x ← α x + (1 − α) s, in 0 … 1, 1 excluded; 0 takes s as it is. Without carry.
  double own = 0;

  bool operator==(const SyncMix&) const = default;
};

/// "carry", or α as a number.
std::string sync_mix_text(const SyncMix& mix);
/// Reads what sync_mix_text writes. Throws Error for what is neither.
SyncMix parse_sync_mix(std::string_view text);

/// Fragments and delay of the exchange of local steps.
struct Streaming {
  std::uint32_t fragments = 1;  ///< P: pieces of the model, which are exchanged in turn
  /// τ: steps from when a fragment is sent to when its mean is applied, less than H/P.
  Round delay = 0;
  SyncMix mix = {};

  /// The first setting that is not that of a whole model, applied at once; for messages.
  std::string_view cause() const {
    return fragments > 1 ? "fragments" : delay > 0 ? "sync_delay" : "sync_mix";
  }
  /// Whether an exchange is another than that of the whole model, applied at once.
  bool on() const { return fragments > 1 || delay > 0 || mix != SyncMix{}; }
  /// The fewest steps from the sending of one fragment to that of the next, ⌊H/P⌋, with an exchange
  /// of each every `interval` steps.
  Round gap(Round interval) const { return interval / fragments; }
  /// Number of steps, from 1 on, after which fragment p of an interval is sent; p counts from 0.
  Round sent_after(Round interval, std::uint32_t fragment) const {
    const Round whole = Round{fragment} + 1;  // of which interval times overflows
    return whole * (interval / fragments) + whole * (interval % fragments) / fragments;
  }
};

/// Throws Error unless an exchange every `interval` rounds can be streamed so.
void check_streaming(const Streaming& streaming, Round interval);

}  // namespace sotto
