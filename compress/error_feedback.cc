#include <sotto/compress/error_feedback.h>

#include <functional>
#include <utility>

namespace sotto {

ErrorFeedback::ErrorFeedback(std::unique_ptr<Compressor> compressor, std::size_t elements,
                             const Ops& ops)
    : compressor_(std::move(compressor)), residual_(elements), ops_(ops) {}

std::size_t ErrorFeedback::encode(std::span<const float> x, const RandomKey& key,
                                  std::span<std::byte> out) {
  const auto add = [&](std::size_t first, std::span<float> piece) {
    ops_.axpy(1.0F, x.subspan(first, piece.size()), piece);
    return true;
  };
  return *compressor_->encode_prepared({std::ref(add), {x}}, residual_, key, out);
}

}  // namespace sotto
