// Two factors of the mean of all nodes' matrices, without the mean: what PowerSGD and Dion
// exchange.
//
// Source: Vogels, Karimireddy and Jaggi, "PowerSGD: practical low-rank gradient compression for
// distributed optimization", NeurIPS 2019, arXiv:1905.13727, Algorithm 1.
//
// For each matrix of the layout, M_i at node i, S drawn alike on all nodes at first:
//   P = orthonormalized mean_i M_i S;   Q = mean_i M_iᵀ P
// Both means are of the factors themselves, on a ring (ring_mean.h): P Qᵀ is the projection of
// mean_i M_i, which no node ever forms. What is in Q's place when a round begins is the S of that
// round. It is orthonormalized first, which changes neither the span of M S nor P but keeps
// float32's range, and its zero columns are drawn anew. Tensors that are no matrix, or too small to
// gain, are averaged exactly with P; where all are, there is no second mean. All nodes take the
// same bytes of both means, so that their factors are equal to the bit.
//
// A building block of the algorithms, not for users. One thread at a time; allocates only in the
// constructor. Memory: P, S and the tensors that travel exactly, and P or S of the largest matrix
// in double precision.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/compress/factors.h>
#include <sotto/optim/exchange/ring_mean.h>
#include <sotto/optim/local_node.h>

namespace sotto {

class FactorMeans {
 public:
  /// A tensor, and where its factors stand. A tensor without a matrix stands on the left as it is.
  struct Part {
    FactorPiece piece;
    std::size_t left_at = 0;
    std::size_t left_size = 0;
    std::size_t right_at = 0;
    std::size_t right_size = 0;

    /// The tensor's part of a whole vector.
    template <typename T>
    std::span<T> of(std::span<T> whole) const {
      return whole.subspan(piece.offset, piece.size);
    }
  };

  /// Factors of `columns` columns of the matrices in the node's layout. `node` must outlive it.
  FactorMeans(LocalNode& node, std::size_t columns);

  /// The two neighbours on the ring.
  Peers peers() const { return mean_.peers(); }
  /// The means that a round takes, for RingMean::most_nodes.
  static constexpr int kMeans = 2;

  /// Starts the round of the M_i that `m` holds, which must stay where and as it is while busy().
  void begin(std::span<const float> m);
  /// A round has begun, and its factors are not there yet.
  bool busy() const { return mean_.busy(); }
  /// Gives the next exchange, as RingMean::next_exchange.
  Result<bool> next_exchange(Exchange& out) { return mean_.next_exchange(out); }
  /// Takes the exchange under way, as Algorithm::complete.
  Status complete(const Exchange& exchange);
  /// Frames that were refused.
  std::uint64_t bad_frames() const { return mean_.bad_frames(); }

  /// The tensors of the layout, in order.
  std::span<const Part> parts() const { return parts_; }
  std::size_t columns() const { return columns_; }
  /// P of a part, or the mean of a tensor that is no matrix.
  std::span<float> left(const Part& part) {
    return std::span(left_).subspan(part.left_at, part.left_size);
  }
  /// Q of a part, which is the next round's S as the caller leaves it.
  std::span<float> right(const Part& part) {
    return std::span(right_).subspan(part.right_at, part.right_size);
  }

  /// Appends all S.
  void save(ByteBuffer& out) const;
  /// Takes back what save wrote.
  Status load(ByteReader& in);

 private:
  void orthonormalize_floats(std::span<float> factor);
  /// Starts the mean of M_i S.
  void begin_left();
  /// Starts the mean of M_iᵀ P, P made of the mean before it.
  void begin_right();
  /// Goes on from the mean of the left factors, where that is there.
  void go_on();

  LocalNode& node_;
  std::size_t columns_;
  std::vector<Part> parts_;
  std::vector<float> left_;   ///< M_i S, then P, and the tensors that travel exactly
  std::vector<float> right_;  ///< S, then M_iᵀ P, then Q
  RingMean mean_;
  std::span<const float> m_;
  bool right_due_ = false;  ///< the mean under way is the first of two
  std::vector<double> wide_;
};

/// K of `lowrank:K`, which the node's compressor is. Throws Error where it asks for several steps
/// of the iteration.
std::size_t factor_columns(const LocalNode& node);

}  // namespace sotto
