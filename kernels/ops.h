// The table of vector operations that everything numeric in sotto is built from.
//
// Every operation is **bit-exact**: all implementations give the same bytes for the same inputs, on
// any device, with any vector width and thread count. That holds because a product and a sum are
// rounded separately (no fused multiply-add), because reductions have a fixed shape (see
// `kReduceLanes`), and because rounding noise is Philox keyed by element (base/philox.h). What is
// *toleranced* is the distance of a reduction to the true sum: its bound is stated beside it.
//
// Thread safety: all members are const and may be called from any thread on disjoint outputs.
// Ownership: spans are views; nothing is kept. Spans of one call have equal lengths (an invariant,
// checked) and do not overlap unless they are the same span or it is said otherwise.
// NaN: elementwise operations pass it through; quantizers require finite input (see
// `count_non_finite`).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include <sotto/base/philox.h>

namespace sotto {

/// Shape of every sum over a span: elements are cut into blocks of kReduceBlock; within a block
/// element i is added, in float32 and in order, to lane i % kReduceLanes; the lanes are then added
/// pairwise (lane l with lane l + 16, then + 8, + 4, + 2, + 1) in float32; block results are added
/// in order in float64. Relative to Σ|terms| the error is at most 133 × 2^-24.
inline constexpr std::size_t kReduceLanes = 32;
inline constexpr std::size_t kReduceBlock = 4096;  ///< elements of a block of a reduction

/// Packed codes hold 64 elements in b planes of 8 bytes: bit i of plane p is bit p of element i's
/// code (element 64 g + i of group g). A last group of m < 64 elements has planes of ⌈m/8⌉ bytes,
/// with zero padding. For b = 8 the codes are plain bytes instead.
inline constexpr std::size_t kPackGroup = 64;

/// Bytes that `count` codes of `bits` bits occupy.
constexpr std::size_t packed_bytes(std::size_t count, int bits) {
  if (bits == 8) {
    return count;
  }
  const std::size_t tail = count % kPackGroup;
  return (count / kPackGroup * 8 + (tail + 7) / 8) * static_cast<std::size_t>(bits);
}

/// The range of a vector.
struct MinMax {
  float min = 0;
  float max = 0;
};

/// The NaNs and infinities of a vector.
struct NonFinite {
  std::size_t count = 0;
  std::size_t first = 0;  ///< index of the first one; 0 when count is 0
};

/// A uniform grid: code q stands for origin + q × step, q = 0 … 2^bits − 1.
struct Grid {
  float origin = 0;
  float step = 0;
  int bits = 8;

  std::uint32_t max_code() const { return (1U << bits) - 1U; }
};

/// How a value between two grid points is rounded.
enum class Rounding {
  stochastic,  ///< up with probability equal to the fractional part, to 2^-16 of a step
  nearest,     ///< to the nearest, halves up
};

/// The k largest magnitudes of a vector: all |x| bits > threshold, and the first `ties` (by index)
/// of those equal to it.
struct TopK {
  std::uint32_t threshold = 0;  ///< bits of |x| as an unsigned integer
  std::size_t ties = 0;
};

/// What the caller reads next. An operation that waits for arithmetic, not for memory, fetches it
/// meanwhile, as much of it as it has done of its own elements. A hint: no result depends on it.
struct Soon {
  std::array<const float*, 3> from{};  ///< null: nothing
  std::size_t count = 0;               ///< floats at each
};

/// A summand of a linear combination: a x.
struct Summand {
  float a = 1;
  std::span<const float> x;
};

class Ops {
 public:
  virtual ~Ops() = default;

  /// "reference", or the instruction set in use, e.g. "AVX3".
  virtual std::string_view name() const = 0;

  // Memory. Vectors lie where the operations reach them: with the host, unless a table says
  // otherwise. Bytes stay with the host where they are called so, as frames are; those of the
  // operations below lie beside the vectors.
  /// Whether the host may touch the vectors.
  virtual bool on_host() const { return true; }
  /// Room for `count` floats, which are zeros. Throws where there is none.
  virtual float* allocate(std::size_t count) const;
  /// Gives back what allocate gave for as many.
  virtual void release(float* floats, std::size_t count) const;
  /// The floats of x in bytes of the host, 4 for each; they are there when it returns.
  virtual void to_host(std::span<const float> x, std::span<std::byte> bytes) const;
  /// y ← the floats in bytes of the host, which may be reused when it returns.
  virtual void from_host(std::span<const std::byte> bytes, std::span<float> y) const;
  /// Elements that one call should be given at least, where a vector is worked on piece by piece:
  /// what stays in a cache.
  virtual std::size_t piece() const { return 4096; }

  // Elementwise.
  /// y ← value, at every element
  virtual void fill(float value, std::span<float> y) const = 0;
  /// y ← x
  virtual void copy(std::span<const float> x, std::span<float> y) const = 0;
  /// y ← a y
  virtual void scale(float a, std::span<float> y) const = 0;
  /// y ← y + a x
  virtual void axpy(float a, std::span<const float> x, std::span<float> y) const = 0;
  /// out ← a₀ x₀ + a₁ x₁ + …, from the left, each product and each sum rounded; `out` may be one
  /// of the first four. At least one summand. Says whether all of `out` is finite.
  virtual bool combine(std::span<const Summand> summands, std::span<float> out) const = 0;
  /// combine of summands that are written down in the call.
  bool combine(std::initializer_list<Summand> summands, std::span<float> out) const {
    return combine(std::span(summands.begin(), summands.size()), out);
  }
  /// out ← x − y
  virtual void subtract(std::span<const float> x, std::span<const float> y,
                        std::span<float> out) const = 0;
  /// Adam's moments and direction (Kingma and Ba 2015), elementwise in float32 in this order:
  /// m ← β₁ m + (1 − β₁) g;  v ← β₂ v + ((1 − β₂) g) g;  out ← (step m) / (√v × root_scale + ε).
  /// `step` is γ / (1 − β₁^t) and `root_scale` 1 / √(1 − β₂^t). Zero where m is zero.
  virtual void adam(std::span<const float> g, float beta1, float beta2, float step,
                    float root_scale, float epsilon, std::span<float> m, std::span<float> v,
                    std::span<float> out) const = 0;

  // Reductions, of the fixed shape above.
  /// Σ x
  virtual double sum(std::span<const float> x) const = 0;
  /// Σ |x|
  virtual double sum_abs(std::span<const float> x) const = 0;
  /// Σ x²
  virtual double sum_squares(std::span<const float> x) const = 0;
  /// Σ x y
  virtual double dot(std::span<const float> x, std::span<const float> y) const = 0;
  /// Smallest and largest element, −0 counted as +0; {0, 0} for an empty span. Requires no NaN.
  virtual MinMax min_max(std::span<const float> x) const = 0;
  /// How many elements are NaN or infinite, and the first of them.
  virtual NonFinite count_non_finite(std::span<const float> x) const = 0;

  // Floats in bytes: little-endian, at any address, 2 bytes an element for fp16 and bf16, 4 for
  // fp32.
  // Half precision is rounded to nearest even; finite values beyond the format's range saturate to
  // its largest finite value. Infinities stay infinite, a NaN becomes the quiet NaN of its sign.
  // Returned is how many finite elements saturated.
  /// x in IEEE half precision.
  virtual std::size_t to_fp16(std::span<const float> x, std::span<std::byte> out) const = 0;
  /// x in bfloat16.
  virtual std::size_t to_bf16(std::span<const float> x, std::span<std::byte> out) const = 0;
  /// v in IEEE half precision, and v ← v − value(bits): as axpy(−1, …) of the bits.
  virtual std::size_t fp16_residual(std::span<float> v, std::span<std::byte> out,
                                    const Soon& soon) const = 0;
  /// As fp16_residual, in bfloat16.
  virtual std::size_t bf16_residual(std::span<float> v, std::span<std::byte> out,
                                    const Soon& soon) const = 0;
  /// y ← y + a × value(bits)
  virtual void fp32_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const = 0;
  /// y ← y + a × value(bits), of IEEE half precision
  virtual void fp16_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const = 0;
  /// y ← y + a × value(bits), of bfloat16
  virtual void bf16_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const = 0;
  /// As count_non_finite, of float32 in bytes.
  virtual NonFinite fp32_non_finite(std::span<const std::byte> bits) const = 0;
  /// As count_non_finite, of IEEE half precision.
  virtual NonFinite fp16_non_finite(std::span<const std::byte> bits) const = 0;
  /// As count_non_finite, of bfloat16.
  virtual NonFinite bf16_non_finite(std::span<const std::byte> bits) const = 0;

  // Grid quantization. With r = (x − origin) × (1 / step), computed as written in float32:
  // stochastic: q = ⌊r + u⌋, u = rounding_noise(key, first + i) × 2^-16; nearest: q = ⌊r + 0.5⌋;
  // then q is clamped to 0 … max_code. A grid of step 0 codes everything as 0; where r is NaN (0 ×
  // ∞, when 1 / step overflows) q is 0.
  /// Quantizes x and packs the codes: out is packed_bytes(x.size(), grid.bits) long.
  /// Returns how many elements were clamped by more than one step (saturated).
  virtual std::size_t quantize_pack(std::span<const float> x, const Grid& grid, Rounding rounding,
                                    const RandomKey& key, std::size_t first,
                                    std::span<std::byte> out) const = 0;
  /// As quantize_pack with v, and v ← v − (origin + q × step): as unpack_axpy(−1, …) of the
  /// codes. What is clamped is not counted.
  virtual void quantize_residual(std::span<float> v, const Grid& grid, Rounding rounding,
                                 const RandomKey& key, std::size_t first, std::span<std::byte> out,
                                 const Soon& soon) const = 0;
  /// y ← y + a × (origin + q × step), each operation rounded. `codes` is packed_bytes long.
  virtual void unpack_axpy(float a, std::span<const std::byte> codes, const Grid& grid,
                           std::span<float> y) const = 0;

  // Signs: a 1-bit plane, 1 for x ≥ 0 (so also for both zeros), 0 for negative x.
  /// The signs of x.
  virtual void sign_pack(std::span<const float> x, std::span<std::byte> out) const = 0;
  /// The signs of v, and v ← v − magnitude × sign: as sign_axpy(−magnitude, …) of the bits.
  virtual void sign_residual(std::span<float> v, float magnitude, std::span<std::byte> out,
                             const Soon& soon) const = 0;
  /// y ← y + magnitude where the bit is 1, y − magnitude where it is 0.
  virtual void sign_axpy(float magnitude, std::span<const std::byte> signs,
                         std::span<float> y) const = 0;

  // Sparse.
  /// Which elements are the k largest in magnitude, ties to the lowest index. Requires
  /// 1 ≤ k ≤ x.size() and finite x.
  virtual TopK top_k(std::span<const float> x, std::size_t k) const = 0;
  /// Indices, ascending, and values of the elements that `top` selects. The outputs have k
  /// elements.
  virtual void top_k_gather(std::span<const float> x, const TopK& top,
                            std::span<std::uint32_t> indices, std::span<float> values) const = 0;
  /// Indices, ascending, and values of all elements with |x| bits > threshold. Returns how
  /// many there are; the outputs, used to their end, hold the first of them.
  virtual std::size_t gather_above(std::span<const float> x, std::uint32_t threshold,
                                   std::span<std::uint32_t> indices,
                                   std::span<float> values) const = 0;
};

/// x[at], wherever the vectors of `ops` lie.
float element(std::span<const float> x, std::size_t at, const Ops& ops);

/// Plain loops: the definition that every other implementation is held to.
const Ops& reference_ops();

/// The fastest implementation for this machine's processor, chosen at run time (Google Highway);
/// reference_ops() when sotto was built without Highway.
const Ops& host_ops();

}  // namespace sotto
