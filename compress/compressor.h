// A compressor: a map C from R^d to few bytes, with a contract that says how far C(x) is from x.
//
// Thread safety: an object is used by one thread at a time; different objects are independent.
// Ownership: a compressor owns no data of the caller's. Nothing allocates after construction except
// where a header says so. `encode` requires finite input; callers check with
// `Ops::count_non_finite`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <sotto/base/bytes.h>
#include <sotto/base/philox.h>
#include <sotto/base/status.h>
#include <sotto/kernels/ops.h>

namespace sotto {

class Workers;

/// The two contracts of the literature; an algorithm names the one that it needs.
enum class ContractKind {
  any,
  exact,              ///< C(x) = x
  unbiased,           ///< E C(x) = x and E‖C(x) − x‖² ≤ α²‖x‖²
  unbiased_absolute,  ///< E C(x) = x and E‖C(x) − x‖² ≤ σ̃² whatever ‖x‖
  contraction,        ///< E‖C(x) − x‖² ≤ (1 − δ)‖x‖² with δ > 0
};

/// "exact", "unbiased" and the like, as messages have it.
std::string_view contract_kind_name(ContractKind kind);

/// Bounds on the error for every finite x of the given dimension d (worst case, not typical). They
/// hold if the encoding saturates no element (Compressor::saturated), and up to the rounding of
/// float32: each bound on E‖C(x) − x‖² has d × floor_per_element² on top.
struct Contract {
  bool unbiased = false;
  /// Relative bound α; infinity if C has no such bound.
  double alpha = std::numeric_limits<double>::infinity();
  /// Absolute bound per element, so that σ̃² = d × this²; infinity if C has no such bound.
  double absolute_per_element = std::numeric_limits<double>::infinity();
  /// δ of the contraction; 0 if C is none.
  double delta = 0;
  /// Resolution of the format, below which it loses small elements altogether.
  double floor_per_element = 0;

  /// Whether the compressor fulfils a need for `kind`.
  bool meets(ContractKind kind) const;
  /// One line, e.g. "unbiased, α ≤ 0.13".
  std::string describe() const;
};

class Compressor {
 public:
  Compressor() = default;
  Compressor(const Compressor& /*other*/) {}  // a copy works alone
  Compressor& operator=(const Compressor&) = delete;
  virtual ~Compressor() = default;

  /// The full specification with all parameters, e.g. "quant:8,chunk=2048,rounding=stochastic":
  /// make_compressor() of it gives an equal compressor.
  virtual std::string spec() const = 0;
  /// Number in the frame header; see registry.h.
  virtual std::uint16_t wire_id() const = 0;
  /// Length of the longest encoding of `elements` elements.
  virtual std::size_t max_bytes(std::size_t elements) const = 0;
  /// The contract for vectors of this length.
  virtual Contract contract(std::size_t elements) const = 0;
  /// An equal compressor, which works alone.
  virtual std::unique_ptr<Compressor> clone() const = 0;
  /// Takes any piece of a vector as well as the whole; false where it goes by the tensors.
  virtual bool divisible() const { return true; }

  /// This compressor, or the one within where it is a decorator (metered.h).
  virtual const Compressor& undecorated() const { return *this; }

  /// Lets `workers` take shares of long vectors; null: no longer. Results do not change. May be
  /// used by several compressors.
  virtual void set_workers(std::shared_ptr<Workers> workers) { workers_ = std::move(workers); }
  /// The workers that `set_workers` was given.
  const std::shared_ptr<Workers>& shared_workers() const { return workers_; }

  /// Encodes finite x of any length (0 included) into `out`, which holds max_bytes(x.size()).
  /// Deterministic in (x, key) and what `save` writes; keys must differ between encodings for their
  /// noise to be independent. Returns the bytes used.
  virtual std::size_t encode(std::span<const float> x, const RandomKey& key,
                             std::span<std::byte> out) = 0;

  /// y ← y + scale × C, where `bytes` is a whole encoding of y.size() elements. Never trusts
  /// `bytes`: anything malformed, or any value that is not finite, gives Fault::malformed or
  /// Fault::non_finite and leaves y untouched.
  virtual Status decode_add(std::span<const std::byte> bytes, float scale,
                            std::span<float> y) const = 0;

  /// One of the encodings of a sum.
  struct Term {
    std::span<const std::byte> bytes;
    float scale = 1;
  };
  /// Takes sum[first … first + sum.size()). Give a std::ref: copies may allocate.
  using Visitor = std::function<void(std::size_t first, std::span<const float> sum)>;

  /// Shows Σ_k scale_k C_k, added up from 0 in the order of the terms, to `visit`, in pieces that
  /// cover it: bit for bit decode_add of each term onto zeros. Where the format is one of chunks,
  /// all terms are read together and a piece is visited while it is in the cache; where there are
  /// workers, visits come from several threads. `scratch` is as long as the vector.
  /// All terms are judged as by decode_add before the first visit; on a fault, terms[refused] is
  /// the one to blame.
  virtual Status decode_sum(std::span<const Term> terms, std::span<float> scratch,
                            const Visitor& visit, std::size_t& refused) const;

  /// How the vector v is made, piece by piece, before it is encoded.
  struct Prepare {
    /// Makes v[first … first + piece.size()), shortly before it is encoded; pieces cover v. They
    /// come in order, or where there are workers, from several threads, in order on each share of
    /// v. False: v is not to be encoded. Give a std::ref: copies may allocate.
    std::function<bool(std::size_t first, std::span<float> piece)> make;
    /// Vectors that `make` reads beside v, element for element; they are prefetched.
    std::array<std::span<const float>, 2> reads{};
    /// False: the residual is not needed. v is then scratch, in which pieces may overlap: `make`
    /// may get any memory for v[first …], and the contents of v are unspecified afterwards.
    bool residual = true;
    /// The vector to which C(v) is added, after what `make` reads there was read: as long as v, or
    /// empty.
    std::span<float> add_to{};
  };

  /// Encodes v, as `prepare` makes it, and leaves the residual v − C(v) in v: one step of error
  /// feedback. Equal to prepare(0, v), encode(v), decode_add(out, −1, v) and decode_add(out, 1,
  /// add_to), bit for bit; where the format is one of chunks, all is done while a chunk is in the
  /// cache. Nothing when `prepare` says so, and what `save` writes is then unchanged; or where no
  /// residual is wanted and an encoding of huge values does not decode. v and add_to may then be
  /// changed in part.
  virtual std::optional<std::size_t> encode_prepared(const Prepare& prepare, std::span<float> v,
                                                     const RandomKey& key,
                                                     std::span<std::byte> out);
  /// Encodes as encode_prepared does, for v as it is, and leaves the residual v − C(v) in v.
  std::size_t encode_residual(std::span<float> v, const RandomKey& key, std::span<std::byte> out);

  /// Elements that the last encode found outside the format's range and clamped: chiefly fixed
  /// grids and fp16; the others only near the end of float32's own range.
  virtual std::size_t saturated() const { return 0; }

  /// Saves the state that an encoder keeps between encodings, for checkpoints. A compressor has no
  /// state unless its header says so. load expects what save wrote of an equal compressor.
  virtual void save(ByteBuffer& /*out*/) const {}
  /// Takes back what save wrote. On a fault the compressor must be discarded.
  virtual Status load(ByteReader& /*in*/) { return {}; }

 protected:
  /// The length of a whole encoding, once C is added to what `prepare` names, if anything; nothing
  /// where it does not decode.
  std::optional<std::size_t> finish_prepared(const Prepare& prepare,
                                             std::span<const std::byte> encoding) const;
  /// Null: none.
  Workers* workers() const { return workers_.get(); }

 private:
  std::shared_ptr<Workers> workers_;
};

}  // namespace sotto
