// Error feedback: remembers what compression left out and adds it to the next message.
//
// e ← e + x;  send C(e);  e ← e − C(e)  (Seide et al. 2014; Stich et al. 2018, arXiv:1809.07599).
// Owns the residual e (d floats). One thread at a time.
#pragma once

#include <memory>
#include <span>

#include <sotto/base/float_vector.h>
#include <sotto/compress/compressor.h>

namespace sotto {

class ErrorFeedback {
 public:
  /// `compressor` must be a contraction for the residual to stay bounded; the caller checks.
  ErrorFeedback(std::unique_ptr<Compressor> compressor, std::size_t elements, const Ops& ops);

  /// Encodes x plus what earlier calls left out. x has the constructor's length; `out` holds
  /// compressor().max_bytes(x.size()). Requires x plus the residual to be finite. Returns the bytes
  /// used.
  std::size_t encode(std::span<const float> x, const RandomKey& key, std::span<std::byte> out);

  Compressor& compressor() { return *compressor_; }
  const Compressor& compressor() const { return *compressor_; }
  /// The residual, for checkpoints and tests.
  std::span<float> residual() { return residual_; }
  std::span<const float> residual() const { return residual_; }

 private:
  std::unique_ptr<Compressor> compressor_;
  FloatVector residual_;
  const Ops& ops_;
};

}  // namespace sotto
