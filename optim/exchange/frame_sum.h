// A weighted sum of what the frames of an exchange hold, read together in one pass over the model.
//
// A building block of the algorithms, not for users. One thread at a time; allocates only in the
// constructor.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/compress/compressor.h>
#include <sotto/optim/exchange/mailbox.h>
#include <sotto/optim/exchange/neighbours.h>
#include <sotto/optim/local_node.h>

namespace sotto {

class FrameSum {
 public:
  /// A sum of at most two encodings of the node's own, and one of each in-edge.
  explicit FrameSum(const LocalNode& node);

  /// Removes all terms; the sum is then zero.
  void clear();
  /// Adds scale × an encoding that the node made itself. These come before the neighbours'.
  void add_own(std::span<const std::byte> encoding, float scale);
  /// Adds scale × the encoding in the frame of the next in-edge.
  void add_next(std::span<const std::byte> encoding, float scale);
  /// Σ_j (W_ij − 1[i = j]) C_j of the exchange under way: by what gossip changes a model, since
  /// rows of W sum to 1.
  void take_gossip(const LocalNode& node, const Mailbox& mail,
                   EncodingIn encoding_in = whole_payload);

  /// Shows the sum to `then`, as Compressor::decode_sum does. A payload that is refused changes
  /// nothing: the exchange stays open for a right one.
  Status show(const LocalNode& node, Mailbox& mail, std::span<float> scratch,
              const Compressor::Visitor& then) const;

 private:
  std::vector<Compressor::Term> terms_;
  std::size_t own_ = 0;  // number of the node's own terms, which are in front
};

}  // namespace sotto
