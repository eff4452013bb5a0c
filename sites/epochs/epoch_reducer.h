// The arithmetic of a step of one model: what a member sends of its gradient, the mean that an
// owner makes of it, and the errors that compression leaves.
//
// Member k of n owns chunk k (optim/exchange/chunks.h). Rule, v_i the gradient:
//   1. member i:   w_i = v_i + e_i;  sends c_i = C(w_i), chunk k to its owner
//   2. owner:      a = (1/|who|) Σ c_j over those that are in it, + ē;  says c̄ = C(a)
//   3. once the step is committed:  e_i ← w_i − c_i where it is in `who`, else w_i;  ē ← a − c̄
// Chunks are encoded one by one, in any order, as a gradient comes; bits do not depend on it. Where
// a chunk was not encoded before its step was committed, e_i stays as it was.
// With the compressor `none` there is no e, and sums begin at the chunk's owner, as in `allreduce`,
// whose bits the means then have; else they begin at the eldest, and have the bits of `qmean`. The
// rounding of epoch e has a key of its own, so that a step that is reduced again is drawn again.
// An owner's ē is of its chunk in one epoch. In the next one it gives it to e_i, times the number
// of members, so that nothing is dropped; that of an owner that died is lost.
//
// Memory: with a compressor 2 floats a parameter (w, e) and 2/n; a gradient's encoding besides. One
// thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/byte_pool.h>
#include <sotto/base/ids.h>
#include <sotto/base/philox.h>
#include <sotto/base/shared_bytes.h>
#include <sotto/base/status.h>
#include <sotto/compress/compressor.h>
#include <sotto/optim/exchange/chunks.h>
#include <sotto/sites/epochs/epoch_mean.h>
#include <sotto/sites/epochs/epoch_node.h>

namespace sotto::sites {

/// Where in a run a member stands when it encodes.
struct EpochPlace {
  Epoch epoch = 0;          ///< the epoch
  Round step = 0;           ///< number of the step, from 1
  std::size_t index = 0;    ///< the member's place
  std::size_t members = 1;  ///< their number
  bool operator==(const EpochPlace&) const = default;
};

/// Encodes chunks of a member's gradient, makes the mean of those of all at a chunk's owner, and
/// keeps the errors of compression, which change when a step commits.
class EpochReducer {
 public:
  /// For models of `dimension` floats. `seed` is the run's. Throws Error for a compressor that goes
  /// by the tensors, which chunks cut.
  EpochReducer(std::size_t dimension, std::unique_ptr<Compressor> compressor, std::uint64_t seed);

  /// Encodes a chunk of the gradient for this place, unless that is done; only that chunk of
  /// `gradient`, which has the model's dimension, is read. Fault::non_finite.
  Status encode(const EpochPlace& place, std::size_t chunk, std::span<const float> gradient);
  /// The encoding for the owner of a chunk. Requires that encode() has made it for the latest
  /// place.
  const SharedBytes& encoding(std::size_t chunk) const { return *sent_[chunk]; }
  /// Whether bytes are an encoding of chunk `index` of `members`.
  bool decodes(std::span<const std::byte> encoding, std::size_t index, std::size_t members);

  /// The mean of the own chunk, of the encodings by place, which all decode. Fault::non_finite.
  Result<MeanPart> make(const EpochPlace& place,
                        const std::map<std::uint16_t, SharedBytes>& encodings);
  /// Writes a mean; false where a part does not decode.
  bool decode(const StepMean& mean, std::span<float> gradient) const;

  /// The mean is committed; `offered` is false where no gradient of this node was offered for it.
  /// Says whether all of the gradient is in it.
  bool commit(const StepMean& mean, bool offered);
  /// No mean of an epoch before can be committed any more: forgets what was encoded and made for
  /// it. Errors stay.
  void begin_epoch() {
    place_.reset();
    made_.reset();
  }
  /// Forgets all errors: the node begins anew.
  void clear();

 private:
  Chunk chunk(std::size_t index, std::size_t members) const {
    return chunk_of(dimension_, static_cast<int>(members), static_cast<int>(index));
  }
  RandomKey key(const EpochPlace& place, std::size_t bucket) const;
  /// Gives a chunk's error of an earlier epoch to the node's own.
  void fold(const EpochPlace& place);
  bool decode_one(std::span<const std::byte> encoding, std::span<float> y) const;
  /// The mean of floats that are sent as they are, all finite, in this order.
  Result<SharedBytes> exact_mean(std::size_t elements, std::span<const SharedBytes> floats);
  /// C of the sum over the number of encodings, with the chunk's error.
  Result<SharedBytes> compressed_mean(const EpochPlace& place,
                                      std::span<const SharedBytes> encodings);

  std::size_t dimension_;
  std::unique_ptr<Compressor> compressor_;
  std::uint64_t seed_;
  bool exact_;
  std::optional<EpochPlace> place_;               ///< where the gradient was encoded last
  std::vector<std::optional<SharedBytes>> sent_;  ///< encodings by chunk; none: it is not encoded
  std::vector<float> residual_;                   ///< w − C(w)
  std::vector<float> whole_;                      ///< w
  std::vector<float> error_;                      ///< e
  std::optional<EpochPlace> made_;                ///< where the own chunk's mean was made last
  std::vector<float> made_residual_;
  Chunk error_chunk_;
  Epoch error_epoch_ = 0;
  std::vector<float> chunk_error_;  ///< ē, of error_chunk_
  std::vector<float> room_;
  BytePool pool_;  ///< of encodings
};

}  // namespace sotto::sites
