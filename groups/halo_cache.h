// Which boundary rows a round sends: a row that matters little, and whose copies are young, is left
// out, and the other ends go on with what they have (Halo::begin).
//
// A row is stable while it is among the ⌊share · n⌋ of this member's n boundary rows at which the
// norm of the loss's gradient is least, of equal norms those of the smaller numbers, and its copies
// are at most `most_age` rounds old. Stable rows are left out. (A historical cache, as ReFresh has
// one; ages are counted exactly here.) With `share` or `most_age` 0 every row is sent. A model that
// is trained on old copies is trained by another method, whose gradient is not that of the graph;
// `most_age` bounds by how much.
//
// One thread at a time; allocates only in the constructor. Memory: 12 bytes a boundary row, and one
// a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/groups/halo.h>

namespace sotto {

/// When a copy of a row is good enough.
struct HaloCacheOptions {
  /// Share of the boundary rows, those with the smallest gradients, that may be left out: 0 to 1.
  double share = 0.5;
  /// Rounds for which a copy is good; 0: every row is sent in every round.
  std::uint32_t most_age = 8;
};

class HaloCache {
 public:
  /// A cache for a matrix of `rows` rows, of which `lists.out` names those that are sent. Throws
  /// Error (field "share") for a share that is none.
  HaloCache(std::size_t rows, const HaloLists& lists, const HaloCacheOptions& options);

  /// Chooses the rows of the next round by the gradients' norms, one a row. The flags are those
  /// that Halo::begin takes, and stay until the next call.
  std::span<const std::uint8_t> choose(std::span<const float> norms);
  /// Boundary rows chosen so far.
  std::uint64_t sent() const { return sent_; }
  /// Boundary rows left out so far.
  std::uint64_t kept() const { return kept_; }

  /// Appends the ages of the copies.
  void save(ByteBuffer& out) const;
  /// Takes back what save wrote of a cache of as many rows. Fault::malformed else.
  Status load(ByteReader& in);

 private:
  HaloCacheOptions options_;
  std::size_t small_ = 0;                // ⌊share · n⌋
  std::vector<std::uint32_t> boundary_;  // rows that are sent at all, ascending
  std::vector<std::uint32_t> ages_;      // rounds since the copies were sent; by boundary row
  std::vector<std::uint8_t> chosen_;     // flags by row
  std::vector<std::uint32_t> order_;     // boundary rows, the smallest norms in front
  std::uint64_t sent_ = 0;
  std::uint64_t kept_ = 0;
};

}  // namespace sotto
