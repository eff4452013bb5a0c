// Measures a compressor's error against its contract, in rounds that a caller asks for.
//
// Wraps any compressor, with equal bytes and equal residuals. In a round that is measured v is
// made, encoded and decoded in three passes instead of one, and its norm is taken twice; in all
// others each call costs one comparison.
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
  double error = 0;   ///< Σ‖v − C(v)‖²; with error feedback, of the kept error
  /// The contract's bound on the error: the tightest one for this v, including the floor; infinity
  /// if the contract states none.
  double bound = 0;
};

/// The bound of `contract` on ‖C(v) − v‖² for a v of `elements` elements and this ‖v‖².
double contract_bound(const Contract& contract, double squared_norm, std::size_t elements);

/// Selects the round to measure, and keeps the latest measurement. One thread at a time.
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
