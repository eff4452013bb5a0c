// Measures what a compressor leaves out against its contract, in rounds that somebody asks for.
//
// Around any compressor; the bytes, and what is left in vectors, are the same. In a round that is
// measured v is made, encoded and decoded in three passes instead of one, and its norm is taken
// twice; in all others each call costs one comparison.
//
// Thread safety: as a compressor. A meter and all compressors that share it belong to one thread.
#pragma once

#include <memory>
#include <optional>

#include <sotto/base/ids.h>
#include <sotto/compress/compressor.h>

namespace sotto {

/// Sums over all encodings v of a round.
struct CompressionSample {
  double signal = 0;  ///< Σ‖v‖²
  double error = 0;   ///< Σ‖v − C(v)‖²; with error feedback, of what is remembered
  /// What the contract lets the error be: its tightest bound for this v, its floor included;
  /// infinity when it states none.
  double bound = 0;
};

/// What `contract` lets ‖C(v) − v‖² be for a v of so many elements and this ‖v‖².
double contract_bound(const Contract& contract, double squared_norm, std::size_t elements);

/// Waits for the round that is to be measured, and keeps what was. One thread at a time.
class CompressionMeter {
 public:
  /// Measures the first round from `first` on in which something is encoded.
  void measure_from(Round first) {
    from_ = first;
    taking_ = false;
  }
  /// The sample of the round that was measured last; nothing before the first.
  const std::optional<CompressionSample>& last() const { return last_; }

  // The compressors'.
  /// Whether an encoding of `round` is to be measured.
  bool wants(Round round) { return round >= from_ && take(round); }
  /// Takes in one encoding of the round.
  void add(const CompressionSample& sample);

 private:
  static constexpr Round kNever = ~Round{0};

  bool take(Round round);

  Round from_ = kNever;
  Round round_ = 0;
  bool taking_ = false;  ///< round_ is being measured
  std::optional<CompressionSample> last_;
};

/// `inner`, measured by `meter` when that asks for it. Clones share the meter. The first
/// measurement of `encode` allocates a vector.
std::unique_ptr<Compressor> make_metered(std::unique_ptr<Compressor> inner,
                                         std::shared_ptr<CompressionMeter> meter,
                                         const Ops& ops = host_ops());

}  // namespace sotto
