// Attention of blocks of queries on blocks of keys and values, one block after the other: the
// result is that of all keys at once, but for rounding.
//
// For each query and head a running maximum m of its scores, the sum ℓ of their exponentials and
// the sum o of values are kept, in float32. A block with scores S = q kᵀ/√w, masked beforehand,
// makes of them m′ = max(m, max S), a = e^(m − m′), ℓ ← a ℓ + Σ e^(S − m′), o ← a o + e^(S − m′) v.
// At the end the output is o/ℓ, and L = m + ln ℓ is kept. Backwards, with D = Σ do ∘ out and
// P = e^(S − L): dv += Pᵀ do, dS = P ∘ (do vᵀ − D)/√w, dq += dS k, dk += dSᵀ q.
//
// Sources: Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"
// (arXiv:1805.02867); Dao 2023, FlashAttention-2 (arXiv:2307.08691), the pass backward from L.
//
// Products are summed in a fixed order (kernels/matrix_product.h), and exponentials and logarithms
// are those of the C library: bits are equal where the library and the processor are. Errors grow
// with the scores: by about max |S| 2⁻²⁴ of the output.
//
// One thread at a time; allocates only in the constructor. Memory: 3 floats a query and head, and
// for the longest block of n keys 4 (64 + w) n. The spans are the caller's.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sotto/kernels/matrix_product.h>
#include <sotto/optim/exchange/chunks.h>

namespace sotto {

/// Which rows of queries meet which rows of keys and values.
struct AttentionTile {
  Chunk queries;          ///< rows of queries
  Chunk keys;             ///< rows of keys and of values
  bool diagonal = false;  ///< query i sees keys 0 … i only; else all

  /// Number of pairs of a query and a key that it sees.
  std::size_t pairs() const {
    return diagonal ? queries.size * (queries.size + 1) / 2 : queries.size * keys.size;
  }
};

/// Rows of all heads side by side: queries, keys, values.
struct AttentionInput {
  std::span<const float> q;  ///< queries
  std::span<const float> k;  ///< keys
  std::span<const float> v;  ///< values, as many as keys
};

/// Gradients at them.
struct AttentionGradient {
  std::span<float> q;  ///< at the queries
  std::span<float> k;  ///< at the keys
  std::span<float> v;  ///< at the values
};

class BlockAttention {
 public:
  /// For `queries` rows of `heads` × `width` elements, and tiles of at most `keys` keys. All ≥ 1,
  /// but for the queries.
  BlockAttention(std::size_t queries, std::size_t keys, std::size_t heads, std::size_t width);

  /// Begins a pass forward: no query has seen a key, and `out` is 0.
  void begin(std::span<float> out);
  /// Lets a tile's queries see its keys; `out` has o.
  void attend(const AttentionTile& tile, const AttentionInput& in, std::span<float> out);
  /// Ends the pass: o becomes the output. Every query has seen a key.
  void finish(std::span<float> out);
  /// Begins the pass backward of the last one forward, given its output and the gradient at it.
  void begin_backward(std::span<const float> out, std::span<const float> dout);
  /// Adds a tile's part to the gradients.
  void attend_backward(const AttentionTile& tile, const AttentionInput& in,
                       std::span<const float> dout, const AttentionGradient& gradient);

  /// Floats that the object holds.
  std::size_t room() const;

 private:
  /// A tile's queries from `first` on, at most kStrip, as one head sees them.
  struct Strip {
    std::size_t first = 0;  ///< number in the tile
    std::size_t rows = 0;
    std::size_t row = 0;  ///< number among all queries
    std::size_t head = 0;
  };

  std::size_t row_elements() const { return heads_ * width_; }
  /// Index of what is kept of a query and a head.
  std::size_t kept(std::size_t row, std::size_t head) const { return row * heads_ + head; }
  /// Calls `work` with each strip of a tile, whose scores, keys and values are there then.
  template <typename Work>
  void each_strip(const AttentionTile& tile, const AttentionInput& in, const Work& work);
  /// The keys that query number `row` of a tile sees.
  static std::size_t seen(const AttentionTile& tile, std::size_t row) {
    return tile.diagonal ? row + 1 : tile.keys.size;
  }
  /// out ← a head's part of some rows.
  void gather(std::span<const float> rows, const Chunk& which, std::size_t head,
              std::span<float> out) const;
  /// Adds `part`, by rows, to a head's part of some rows.
  void scatter(std::span<const float> part, const Chunk& which, std::size_t head,
               std::span<float> rows) const;
  /// scores_ ← the strip's scores.
  void score(const Strip& strip, std::size_t keys, std::span<const float> q);
  void soften(const AttentionTile& tile, const Strip& strip, std::span<float> out);
  void differentiate(const AttentionTile& tile, const Strip& strip, std::span<const float> dout,
                     const AttentionGradient& gradient);

  std::size_t heads_;
  std::size_t width_;
  float scale_;  // 1/√w
  MatrixProduct product_;
  std::vector<float> maximum_;     // m, then L
  std::vector<float> sum_;         // ℓ
  std::vector<float> dot_;         // D
  std::vector<float> scores_;      // S, then P
  std::vector<float> changes_;     // dP, then dS
  std::vector<float> transposed_;  // Pᵀ and dSᵀ
  std::vector<float> strip_q_;     // queries of a strip
  std::vector<float> strip_do_;    // gradients at its outputs
  std::vector<float> keys_;        // a head's keys
  std::vector<float> values_;
  std::vector<float> made_;  // a product on its way into rows
};

}  // namespace sotto
