#include <sotto/compress/error_feedback.h>

#include <utility>

namespace sotto {

ErrorFeedback::ErrorFeedback(std::unique_ptr<Compressor> compressor, std::size_t elements,
                             const Ops& ops)
    : compressor_(std::move(compressor)), residual_(elements), ops_(ops) {}

std::size_t ErrorFeedback::encode(std::span<const float> x, const RandomKey& key,
                                  std::span<std::byte> out) {
  ops_.axpy(1.0F, x, residual_);
  return compressor_->encode_residual(residual_, key, out);
}

}  // namespace sotto
