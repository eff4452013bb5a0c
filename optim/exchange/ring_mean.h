// The mean of all nodes' vectors on a ring: what all-reduce SGD and PowerSGD exchange.
//
// Source: ring reduce-scatter and all-gather, Patarasuk and Yuan, "Bandwidth optimal all-reduce
// algorithms for clusters of workstations", J. Parallel Distrib. Comput. 69, 2009.
//
// The vector is cut into n chunks (chunks.h). In phase p = 0 … n − 2 node r sends its partial sum
// of chunk r − p to node r + 1 and adds the one that it receives, of chunk r − p − 1; all indices
// modulo n. Node r then has the whole sum of chunk r + 1 and multiplies it by 1/n. In phases n − 1
// … 2n − 3 these means travel round the ring unchanged. A chunk c is thus summed in ring order,
// g_c + g_{c+1} + …, and all nodes decode the same bytes: their means are equal to the bit.
//
// A building block of the algorithms, not for users. One thread at a time; allocates only in the
// constructor. Memory: frames alone, the mean replaces the vector.
// Bytes of a mean of d elements: 2 (n − 1) frames of ⌈d/n⌉ or ⌊d/n⌋: 8 d (n − 1)/n + 128 (n − 1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <sotto/base/status.h>
#include <sotto/compress/compressor.h>
#include <sotto/compress/none.h>
#include <sotto/optim/algorithm.h>
#include <sotto/optim/exchange/mailbox.h>
#include <sotto/optim/local_node.h>

namespace sotto {

/// The encoding of the chunks.
enum class RingCodec {
  full,       ///< `none`
  compressor  ///< the node's own compressor, at every hop
};

class RingMean {
 public:
  /// Means of vectors of at most `longest` elements, with frames of this bucket. `node` must
  /// outlive it.
  RingMean(LocalNode& node, std::size_t longest, RingCodec codec, std::uint32_t bucket = 0);

  /// The two neighbours on the ring.
  Peers peers() const;
  /// An exchange is under way.
  bool open() const { return mail_.open(); }
  std::uint64_t bad_frames() const { return mail_.bad_frames(); }
  /// Phases of a round that one mean takes.
  int phases() const { return 2 * (node_.nodes() - 1); }
  /// The most nodes that can take `means` means a round: phases are numbered in 16 bits.
  static constexpr int most_nodes(int means) { return (1 << 16) / (2 * means) + 1; }

  /// Starts the mean of all v, which is replaced by it and must stay where it is; `first` is the
  /// number of its first phase in the round, `what` names v where a sum overflows.
  void begin(std::span<float> v, int first, std::string_view what);
  /// A mean has begun and is not complete.
  bool busy() const { return open() || more(); }
  /// Writes the exchange of the next phase to `out`; false where none is left, or one is open(). A
  /// sum that is not finite is Fault::non_finite.
  Result<bool> next_exchange(Exchange& out);
  /// Takes the exchange under way, as Algorithm::complete.
  Status complete(const Exchange& exchange);

 private:
  /// Phases are left.
  bool more() const { return phase_ < phases(); }
  /// Posts the next phase.
  Status post();
  const Compressor& codec() const { return exact_ ? *exact_ : node_.compressor(); }
  /// Whether chunks travel as they are.
  bool exact() const { return codec().wire_id() == kNoneWireId; }
  /// Encodes the chunk of the next phase, multiplied by 1/n where it is a whole sum. Returns the
  /// bytes used, or a fault where a value is not finite.
  Result<std::size_t> encode(std::span<float> x);
  Result<std::size_t> encode_exactly(std::span<float> x, float factor);
  /// Chunk r − `back`, modulo n; r is this node.
  std::span<float> chunk(int back) const;
  bool gathering(int phase) const { return phase >= node_.nodes() - 1; }

  LocalNode& node_;
  /// Exact compressor, where the node's own is not to be taken.
  std::unique_ptr<Compressor> exact_;
  Edge next_;      // the node to which this one sends
  Edge previous_;  // the node that this one hears
  Mailbox mail_;
  std::uint32_t bucket_;
  std::span<float> v_;
  int first_ = 0;
  int phase_ = phases();  ///< phase that is posted next
  std::string_view what_;
};

}  // namespace sotto
