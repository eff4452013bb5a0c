// One end of an edge of PowerGossip: the power iteration on what two nodes' models differ by.
//
// Source: Vogels, Karimireddy and Jaggi, "Practical low-rank communication compression in
// decentralized deep learning", NeurIPS 2020, arXiv:2008.01425.
//
// Both ends of the edge {i, j}, i < j, hold the same orthonormal basis B of K columns for every
// matrix, and work on D = X_i − X_j, which neither knows. A step:
//   1. an end sends the product X B of its own X; D B is the difference of the two
//   2. C(D) = (D B) Bᵀ, the projection of D on the basis: i moves along −C(D), j along +C(D)
//   3. the next basis is D B, orthonormalized, and stands on the other side: it is used on Dᵀ
// Two such steps are one of power iteration on Dᵀ D. Both ends subtract the same float32 values in
// the same order, so that their bases stay equal to the bit without a further word; a digest of the
// basis travels along to notice if they ever are not. Columns that are zero, as all are at first
// and while the models are equal, are drawn from (seed, i, j, round), alike at both ends; with
// start=random all are, in every step.
//
// A building block of PowerGossip, not for users. One thread at a time; allocates only in the
// constructor, and in save. Memory: three vectors of K floats for each row or column of each
// matrix, whichever are more; its node lends all links the scratch of a product.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/ids.h>
#include <sotto/base/philox.h>
#include <sotto/base/status.h>
#include <sotto/compress/factors.h>
#include <sotto/compress/low_rank.h>

namespace sotto {

class PowerLink {
 public:
  /// The end at `self` of its edge to `peer`; `pieces` are those of the model.
  PowerLink(Rank self, Rank peer, std::uint64_t seed, const LowRankOptions& options,
            const std::vector<FactorPiece>& pieces);

  Rank peer() const { return peer_; }

  /// Starts a round where the last `commit` left off.
  void begin(Round round);
  /// Elements of the next product.
  std::size_t product_size() const { return size_on(other(side_)); }
  /// Makes the basis of this step, and returns X B of the model x. Elements beyond
  /// largest_value() are cut down and counted. `scratch` has scratch_size() elements, and no
  /// meaning before or after.
  std::span<const float> product(std::span<const float> x, std::span<double> scratch);
  /// A digest of the basis, which is equal at both ends.
  std::uint64_t digest() const;
  /// y ← y + weight × C(X_peer − X_self), given the peer's product.
  void take(std::span<const float> theirs, float weight, std::span<float> y);
  /// Keeps the factors that the steps since `begin` have found.
  void commit();

  /// The most elements that a product has.
  static std::size_t longest_product(const std::vector<FactorPiece>& pieces, std::size_t rank);
  /// Elements of the scratch: the most that a product with one matrix has.
  static std::size_t scratch_size(const std::vector<FactorPiece>& pieces, std::size_t rank);
  /// The largest value in a product: C(D) is then finite.
  static float largest_value(std::size_t rank);
  std::uint64_t saturated() const { return saturated_; }

  /// The state between rounds.
  void save(ByteBuffer& out) const;
  /// Restores the state that save wrote for the same edge.
  Status load(ByteReader& in);

 private:
  /// The side of the basis: on the right of the tall form of each matrix (factors.h), with a row
  /// for each of its columns, or on the left.
  enum class Side : std::uint8_t { right = 0, left = 1 };
  static Side other(Side side) { return side == Side::right ? Side::left : Side::right; }
  /// Floats of a basis on that side, which are those of a product of one on the other side.
  std::size_t size_on(Side side) const;
  std::size_t size_on(Side side, const MatrixShape& shape) const {
    return rank_ * (side == Side::right ? shape.shorter() : shape.longer());
  }
  /// Calls visit(piece, basis, product) for every matrix.
  template <typename Visit>
  void for_each_matrix(Visit&& visit);

  Rank self_;
  Rank peer_;
  std::uint64_t seed_;
  std::size_t rank_;
  bool warm_;
  std::vector<FactorPiece> matrices_;
  RandomStream random_;
  Side side_ = Side::right;
  std::vector<float> basis_;    // D B of the step before, then B
  std::vector<float> product_;  // X B, then D B
  Side kept_side_ = Side::right;
  std::vector<float> kept_;  // basis_ between rounds
  std::uint64_t saturated_ = 0;
};

}  // namespace sotto
