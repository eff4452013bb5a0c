// The public copy of a node's vector, which all its neighbours hold, and the pull of the
// neighbours' copies: the state of compressed gossip on a fixed graph, in CHOCO-SGD, BEER and
// decentralized 1-bit Adam.
//
// Source: Koloskova et al., "Decentralized stochastic optimization and gossip algorithms with
// compressed communication", ICML 2019, arXiv:1902.00340. All holders change the public copy by
// what its owner sends, x̂_i ← x̂_i + q_i. Of all copies a node keeps its own and the pull
// p_i = Σ_j W_ij (x̂_j − x̂_i) only; choco_sgd.h says why not Σ_j W_ij x̂_j.
//
// A building block of the algorithms, not for users. One thread at a time. Memory: 2 floats a
// parameter; allocates only in the constructor.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/optim/exchange/frame_sum.h>
#include <sotto/optim/exchange/mailbox.h>
#include <sotto/optim/exchange/neighbours.h>
#include <sotto/optim/local_node.h>

namespace sotto {

struct PublicCopy {
  /// 0, as is what pulls at it.
  explicit PublicCopy(const LocalNode& node);

  /// change ← Σ_j (W_ij − 1[i = j]) q_j, over the frames of the exchange under way and the one
  /// sent: what p_i gains, since rows of W sum to 1. Faults as decode_neighbours.
  static Status sum_changes(const LocalNode& node, Mailbox& mail, std::span<float> change,
                            EncodingIn encoding_in = whole_payload);

  /// pull ← pull + that change, shown to `then` piece by piece, while a piece is in the cache. A
  /// payload that is refused changes nothing.
  Status take_changes(const LocalNode& node, Mailbox& mail, std::span<float> scratch,
                      const Compressor::Visitor& then, EncodingIn encoding_in = whole_payload);

  /// Appends the copy and the pull.
  void save(ByteBuffer& out) const;
  /// `what` the copy is of, for the messages of faults.
  Status load(ByteReader& in, std::string_view what);

  Vector copy;  ///< x̂_i
  Vector pull;  ///< p_i

 private:
  FrameSum changes_;  ///< sum of changes in the exchange under way
};

}  // namespace sotto
