// The encodings of a node: its compressor, with rounding keyed by the node and its round.
//
// A building block of the algorithms, not for users: a part of LocalNode (local_node.h). One thread
// at a time. Views the node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <sotto/base/status.h>
#include <sotto/compress/compressor.h>

namespace sotto {

class LocalNode;

class NodeEncoder {
 public:
  /// Encodes what `node` sends; it owns this object, and outlives it.
  explicit NodeEncoder(const LocalNode& node) : node_(node) {}

  /// C(x) into `out`, which holds the compressor's max_bytes; returns the written bytes. The
  /// rounding is keyed by (seed, rank, round, bucket and part).
  std::span<const std::byte> encode(std::span<const float> x, std::span<std::byte> out,
                                    std::uint32_t part = 0);
  /// Encodes as encode does, for C(v), and leaves the residual v − C(v) in v.
  std::span<const std::byte> encode_residual(std::span<float> v, std::span<std::byte> out,
                                             std::uint32_t part = 0);
  /// Encodes as encode_residual does, by `codec`, which need not be the node's C.
  std::span<const std::byte> encode_residual(Compressor& codec, std::span<float> v,
                                             std::span<std::byte> out, std::uint32_t part);
  /// Encodes as encode does, for C(v), with v as `prepare` makes it, which says of each piece
  /// whether it is finite; where a residual is left, the pieces may be v as it stands, otherwise
  /// they do not depend on it. Fault::non_finite naming `what` unless v is finite and its encoding
  /// decodes; only v is changed, and in part what C(v) is added to.
  Result<std::span<const std::byte>> encode_made(const Compressor::Prepare& prepare,
                                                 std::span<float> v, std::span<std::byte> out,
                                                 std::string_view what);
  /// Error feedback: v ← x + error; encodes C(v), and leaves v − C(v), the next error, in v.
  /// Fault::non_finite unless v is finite; x and error are not changed.
  Result<std::span<const std::byte>> encode_compensated(std::span<const float> x,
                                                        std::span<const float> error,
                                                        std::span<float> v,
                                                        std::span<std::byte> out);
  /// y ← y + scale × C, from an encoding of this node's own. It can fail only when what was encoded
  /// is near the end of float32's range; y is then untouched.
  Status decode_own(std::span<const std::byte> encoding, float scale, std::span<float> y) const;
  /// Elements that the compressor clamped so far.
  std::uint64_t saturated() const { return saturated_; }

 private:
  const LocalNode& node_;
  std::uint64_t saturated_ = 0;
};

}  // namespace sotto
