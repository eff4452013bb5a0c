#include <cmath>
#include <vector>

#include <sotto/base/check.h>
#include <sotto/compress/registry.h>

namespace sotto {

double measure_alpha(Compressor& compressor, std::size_t elements, int samples,
                     std::uint64_t seed) {
  std::vector<float> x(elements);
  std::vector<std::byte> bytes(compressor.max_bytes(elements));
  RandomStream normals({.seed = seed, .purpose = Purpose::measure});
  double error = 0;
  double norm = 0;
  for (int sample = 0; sample < samples; ++sample) {
    for (float& value : x) {
      value = static_cast<float>(normals.normal());
      norm += static_cast<double>(value) * static_cast<double>(value);
    }
    compressor.encode_residual(
        x, {.seed = seed, .round = static_cast<Round>(sample), .purpose = Purpose::quantize},
        bytes);
    for (const float left : x) {
      error += static_cast<double>(left) * static_cast<double>(left);
    }
  }
  return norm > 0 ? std::sqrt(error / norm) : 0;
}

double typical_alpha(const Compressor& compressor, std::size_t dimension) {
  constexpr std::size_t kMostElements = 1U << 16U;
  constexpr int kSamples = 4;
  return measure_alpha(*compressor.clone(), std::min(dimension, kMostElements), kSamples);
}

}  // namespace sotto
