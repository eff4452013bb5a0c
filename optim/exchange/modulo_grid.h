// Models sent as integers modulo 2^B, for receivers that have a model nearby.
//
// Source: Lu and De Sa, "Moniqua: modulo quantized communication in decentralized SGD", ICML 2020,
// arXiv:2002.11787, section 4; the check for wrapped integers is sotto's own.
//
// A value x is rounded to the integer k = ⌊x / STEP + u⌋, u uniform in [0, 1) from Philox, so that
// E k STEP = x; sent is k mod 2^B. A receiver with the value y takes the congruent integer nearest
// to y / STEP. That is k itself whenever |x − y| ≤ θ = (2^(B−1) − 1.5) STEP: half of the range 2^B
// STEP, less what rounding moves on both sides.
//
// Models further apart give a wrong integer, off by a multiple of 2^B. In front of the codes
// therefore stands Σ_e k_e m_e mod 2^64 of the whole integers, with odd multipliers m_e that Philox
// draws from (seed, round, e), equal on all nodes. One wrong integer always changes the sum: m_e is
// odd, and k below 2^63; of several, all but one in about 2^(63 − B) cases do.
//
// Payload: B (1 byte), STEP (float32), the sum (8 bytes), then the packed codes (kernels/ops.h).
//
// A building block of Moniqua, not for users. One thread at a time; allocates only in the
// constructor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/philox.h>
#include <sotto/base/status.h>
#include <sotto/compress/grid.h>
#include <sotto/kernels/ops.h>

namespace sotto {

class ModuloGrid {
 public:
  static constexpr std::size_t kHeaderBytes = 13;
  /// Fewest bits. With 2 bits θ is half a step, and mixing what was rounded moves models further
  /// than that.
  static constexpr int kLeastBits = 3;
  /// Values of more steps than this are refused: beyond, STEP is far below float32's own
  /// resolution.
  static constexpr double kMostSteps = 0x1p48;

  /// 3 to 8 bits; room for `senders` neighbours.
  ModuloGrid(const GridOptions& options, std::uint64_t seed, std::size_t senders, const Ops& ops);

  /// θ
  double reach() const;
  /// Bytes of the payload for `elements` elements.
  std::size_t payload_bytes(std::size_t elements) const {
    return payload_bytes(elements, grid_.bits);
  }
  /// Bytes of the payload on a grid of `bits` bits.
  static std::size_t payload_bytes(std::size_t elements, int bits) {
    return kHeaderBytes + packed_bytes(elements, bits);
  }
  /// The first element of x that is out of range; nothing when all are in it.
  std::optional<std::size_t> beyond_range(std::span<const float> x) const;

  /// Writes the payload for x with the noise of `rounding`, of the round. `out` holds
  /// payload_bytes.
  void encode(std::span<const float> x, const RandomKey& rounding, std::span<std::byte> out) const;

  /// Fault::malformed unless `payload` has the length and the grid that are due.
  Status check_header(std::span<const std::byte> payload, std::size_t elements) const;

  /// The payload that a node sent, and the weight W_ij that it has here.
  struct Heard {
    std::span<const std::byte> payload;
    float weight = 0;
  };
  /// y ← x + Σ_j W_ij (x̂_j − x̂_i), in the order of `heard`; `own` is what this node sent for its
  /// x. Payloads have passed check_header. Returns the first of `heard` with integers that do not
  /// have the sum that it states; y is then spoilt.
  std::optional<std::size_t> mix(std::span<const float> x, std::span<const std::byte> own,
                                 std::span<const Heard> heard, Round round, std::span<float> y);

 private:
  static constexpr std::size_t kBlock = 1024;  // a multiple of kPackGroup and kNoiseGroup

  /// x / STEP, bounded so that all integers near it exist.
  double position(float x) const;
  /// The integer congruent to a code that is nearest to `centre`.
  std::int64_t nearest(float code, std::int64_t centre) const;
  RandomKey multiplier_key(Round round) const;
  /// Codes of elements `first` … of a payload, as floats.
  void unpack(std::span<const std::byte> payload, std::size_t first, std::span<float> codes) const;
  std::span<const std::byte> codes_of(std::span<const std::byte> payload, std::size_t first,
                                      std::size_t count) const;

  Grid grid_;  // grid of the codes themselves: origin 0, step 1
  float step_;
  double inverse_;
  std::uint64_t seed_;
  const Ops& ops_;
  std::vector<std::uint64_t> sums_;  // sums of the integers taken, by sender
};

}  // namespace sotto
