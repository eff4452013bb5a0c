// The mean of all nodes' vectors through chunk owners: in full precision, or compressed in both
// directions with an error memory at both ends.
//
// Source of the compressed form: Tang et al., "DoubleSqueeze: parallel stochastic gradient descent
// with double-pass error-compensated compression", ICML 2019, arXiv:1905.05957, which APMSqueeze
// and 1-bit Adam build on. Chunk k of a vector (chunks.h) belongs to node k:
//   1. node i:         δ_i ← v_i + β δ_i;  send C(δ_i), chunk k to node k;  δ_i ← δ_i − C(δ_i)
//   2. chunk's owner:  a = mean_i C(δ_i) + δ̄;  send C(a) to all;  δ̄ ← a − C(a)
//   3. all:            the mean is the n chunks C(a)
// β = 1 in the paper: what was not sent stays to be sent, and the means' sum is that of all v_i but
// for what δ_i and δ̄ hold.
// An owner that knows what every node sent of its chunk may clip each C(δ_i) there to the median of
// their lengths (median_clip.h). What is clipped away is lost: δ_i knows nothing of it.
// An algorithm may have the owner make something else of the mean first, an update from its own
// state (sharded.h), and send that by another compressor C′:
//   2. chunk's owner:  a = f(mean_i C(δ_i)) + δ̄;  send C′(a) to all;  δ̄ ← a − C′(a)
// Each chunk is encoded by itself, at its own length: nothing is padded. Sums are in rank order,
// and all nodes decode the same bytes, so that they hold the same mean to the bit. Elements for
// which few bits will not do may travel beside the encodings in full precision (exact_part.h).
//
// A building block of the algorithms, not for users. One thread at a time; allocates only in the
// constructor.
// Memory: 1 float a parameter (δ_i), 3/n (δ̄, a, the own chunk's encoding), and frames; all
//   of them with room for full precision, beside an encoding too.
// Bytes of a mean: 2 (n − 1) frames of a chunk each: 2 (n − 1)/n |C(v)| + 128 (n − 1), or
//   (n − 1)/n (|C(v)| + |C′(a)|) + 128 (n − 1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/compress/compressor.h>
#include <sotto/optim/algorithm.h>
#include <sotto/optim/exchange/chunks.h>
#include <sotto/optim/exchange/exact_part.h>
#include <sotto/optim/exchange/mailbox.h>
#include <sotto/optim/exchange/median_clip.h>
#include <sotto/optim/local_node.h>

namespace sotto {

class ChunkMean {
 public:
  /// `node` must outlive it. `gather` is C′; null: the node's C.
  explicit ChunkMean(LocalNode& node, std::unique_ptr<Compressor> gather = nullptr);

  /// Sets β, above 0 and at most 1.
  void set_error_decay(float decay) { error_decay_ = decay; }
  /// Has owners clip what the nodes send of their chunk to the median of its lengths. Compressed
  /// means with elements in full precision are none that can be clipped.
  void clip_to_median() { clip_.emplace(node_.nodes()); }
  /// Writes over the mean of this node's chunk, which is finite, what is sent in its place.
  using AtOwner = std::function<Status(std::span<float> mean)>;
  /// Has every compressed mean go through `make`; what all nodes end with, and δ̄, are then of what
  /// it makes. Called once a mean, from `complete`, when δ_i is what it will be.
  void set_owner(AtOwner make) { at_owner_ = std::move(make); }

  /// All other nodes.
  Peers peers() const;
  /// An exchange is under way.
  bool open() const { return mail_.open(); }
  std::uint64_t bad_frames() const { return mail_.bad_frames(); }

  /// Starts the mean of all `v`, which are left as they are. A round has one mean at most.
  void begin_exact(std::span<float> v);
  /// Starts the mean of all v + β δ, compressed by the node's C; v is spoilt. Elements where
  /// `mask`, empty or as long, is 0 are taken as 0, and carry no error. All nodes have the same
  /// mask and the same `exact.at`; what `exact` views outlives the mean, and its values end as the
  /// mean of all nodes', exactly. Fault::non_finite if v + β δ overflows; δ is then as it was.
  Status begin_compressed(std::vector<float>& v, std::span<const float> mask = {},
                          const ExactElements& exact = {});
  /// Writes the exchange that is due to `out`; false when none is.
  bool next_exchange(Exchange& out) { return mail_.next_exchange(out); }
  /// Takes the exchange under way, as Algorithm::complete. The mean has another one, unless it is
  /// not open() any more: it then stands in `mean`.
  Status complete(const Exchange& exchange, std::span<float> mean);

  /// δ_i
  std::span<const float> error() const { return error_; }
  /// δ̄ of this node's chunk
  std::span<const float> chunk_error() const { return chunk_error_; }
  /// Clears both errors, when the averaged quantity changes its unit.
  void clear_errors();

  /// Appends the error memories, and what C′ remembers.
  void save(ByteBuffer& out) const;
  /// Restores the state that save wrote for the same vector.
  Status load(ByteReader& in);

 private:
  static constexpr std::uint16_t kScatter = 0;  // first phase of a round: chunks go to their owners
  static constexpr std::uint16_t kGather = 1;   // second phase: results go to all

  /// One mean, as all nodes compute it.
  struct Pass {
    bool compressed = false;
    std::span<const float> mask = {};
    ExactElements exact = {};

    /// Zeroes what the mask leaves out of `values`, the elements of the vector from `first` on.
    void leave_out(std::size_t first, std::span<float> values) const;
  };

  Chunk chunk(Rank owner) const { return chunk_of(node_.dimension(), node_.nodes(), owner); }
  /// The number of another node's edge.
  std::size_t edge(Rank peer) const;
  /// The compressor of a phase.
  Compressor& codec(std::uint16_t phase) const;
  ExchangePlan plan(std::uint16_t phase) const;

  /// Encodes v, the chunk of `owner`, for a phase; when compressed, v is left with the residual,
  /// else as it is.
  std::span<const std::byte> encode(std::uint16_t phase, Rank owner, std::span<float> v,
                                    std::span<std::byte> out, std::uint32_t bucket);
  /// Sends v's chunks to their owners.
  void scatter(std::span<float> v);
  /// Takes all nodes' chunks and sends the result.
  Status average();
  /// Has clip_ know the lengths of what all nodes sent of this node's chunk; average_ is spoilt.
  Status measure_lengths();
  /// y ← y + scale × the chunk of `owner` as `from`, which may be this node, sent it in the phase.
  Status decode(std::uint16_t phase, Rank from, Rank owner, float scale, std::span<float> y);
  /// The encoding alone in a payload; what else it holds is added to the elements in full
  /// precision.
  Result<std::span<const std::byte>> encoding_in(std::span<const std::byte> payload, Rank owner);

  LocalNode& node_;
  float error_decay_ = 1;  // β
  AtOwner at_owner_;       // f; empty: the mean itself is sent
  std::optional<MedianClip> clip_;
  std::unique_ptr<Compressor> exact_;
  std::unique_ptr<Compressor> gather_;  // C′; null: C
  std::vector<Edge> others_;            // all nodes but this one
  std::vector<std::size_t> elements_;   // lengths of the others' chunks
  std::vector<Parcel> parcels_;         // chunks on their way to the others
  Mailbox mail_;
  Pass pass_;
  std::vector<std::byte> own_chunk_;  // the encoding of the chunk that this node owns
  std::span<const std::byte> own_payload_;
  std::vector<float> error_;
  std::vector<float> chunk_error_;
  std::vector<float> average_;  // a, of this node's chunk
};

}  // namespace sotto
