// Compressors on a CUDA device: encodings of vectors in device memory, byte for byte those of
// make_compressor of the same specification, and their addition to a vector there.
//
// Encoding with error feedback, v = x + e, the chunk's scale, the codes and the residual, is one
// pass over the memory where a chunk fits into a block's own (codecs of the default chunk lengths
// do), and three otherwise. For `none`, `fp16`, `bf16`, `quant`, `grid` and `sign`, whose encodings
// have a length that is known beforehand.
//
// Everything is put on `stream` and done in its order; nothing waits or allocates. Pointers and
// spans are to device memory, encodings at any address. What went wrong there is in the Outcome.
// Thread safety: const members from any thread. Ownership: spans are views; nothing is kept.
// NaN: encode requires finite input, and says where it was not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <sotto/base/philox.h>
#include <sotto/base/status.h>
#include <sotto/compress/compressor.h>
#include <sotto/kernels/cuda/stream.h>

namespace sotto::cuda {

/// The findings of an operation, in device memory. Every operation writes them anew.
struct Outcome {
  static constexpr std::uint64_t kSound = std::numeric_limits<std::uint64_t>::max();

  /// kSound, or 256 × place + a Fault: of all that is wrong, what comes first. The place is an
  /// element or, for what a decoder refuses in a format of chunks, a chunk.
  std::uint64_t fault = kSound;
  /// The count that Compressor::saturated gives.
  std::uint64_t saturated = 0;

  /// The fault in words, for a copy on the host.
  Status status() const;
};

/// Whether there are codecs of this family, "quant" say; also in builds without device code.
bool has_codec(std::string_view family);

class Codec {
 public:
  /// Makes the codec that make_compressor would. Throws Error for what is no specification, and for
  /// families that only hosts have.
  explicit Codec(std::string_view spec, ContractKind need = ContractKind::any);
  ~Codec();
  Codec(Codec&&) noexcept;
  Codec& operator=(Codec&&) noexcept;

  /// The full specification.
  const std::string& spec() const { return spec_; }
  std::uint16_t wire_id() const { return wire_id_; }
  /// Length of an encoding.
  std::size_t bytes(std::size_t elements) const;
  /// Bytes of workspace for encoding; 0 where one pass does.
  std::size_t workspace(std::size_t elements) const;

  /// One step of error feedback: v = x + e; out ← C(v); e ← v − C(v). An empty x stands for zeros.
  /// `out` is bytes(e.size()) long, `work` workspace(e.size()) or longer and at a multiple of 16.
  /// Where v is not finite, the outcome says so, and out and e are unspecified.
  void encode_residual(std::span<const float> x, std::span<float> e, const RandomKey& key,
                       std::span<std::byte> out, std::span<std::byte> work, Outcome* outcome,
                       Stream stream) const;
  /// out ← C(x)
  void encode(std::span<const float> x, const RandomKey& key, std::span<std::byte> out,
              std::span<std::byte> work, Outcome* outcome, Stream stream) const;
  /// y ← y + scale × C, where `bytes` is an encoding of y.size() elements. Trusts no bytes: where
  /// anything is wrong with them, the outcome says so, and y is as it was. Fault::malformed at
  /// once, with nothing put on the stream, for a wrong length.
  Status decode_add(std::span<const std::byte> bytes, float scale, std::span<float> y,
                    Outcome* outcome, Stream stream) const;

 private:
  struct Form;

  std::string spec_;
  std::uint16_t wire_id_ = 0;
  std::unique_ptr<const Form> form_;
};

}  // namespace sotto::cuda
