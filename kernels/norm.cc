#include <sotto/kernels/norm.h>

#include <cmath>
#include <vector>

#include <sotto/kernels/vector.h>

namespace sotto {

double squared_norm(std::span<const float> x, const Ops& ops) {
  // Below this, squares that vanished in float32 may have mattered.
  constexpr double kSafe = 0x1p-90;
  const double sum = ops.sum_squares(x);
  if (std::isfinite(sum) && sum >= kSafe) {
    return sum;
  }
  std::vector<float> room;
  double wide = 0;
  for (const float value : on_host(x, ops, room)) {
    wide += static_cast<double>(value) * static_cast<double>(value);
  }
  return wide;
}

double norm(std::span<const float> x, const Ops& ops) { return std::sqrt(squared_norm(x, ops)); }

double squared_distance(std::span<const float> x, std::span<const float> y) {
  double sum = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double difference = double{x[k]} - double{y[k]};
    sum += difference * difference;
  }
  return sum;
}

}  // namespace sotto
