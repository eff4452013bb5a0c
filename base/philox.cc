#include <sotto/base/philox.h>

#include <cmath>
#include <numbers>

#include <sotto/base/check.h>

namespace sotto {

std::uint64_t RandomStream::below(std::uint64_t bound) {
  check(bound > 0, "RandomStream::below needs a positive bound");
  // Reject the incomplete last interval, so that every result has the same number of preimages.
  const std::uint64_t limit = (~std::uint64_t{0}) - (~std::uint64_t{0}) % bound;
  std::uint64_t draw = next_u64();
  while (draw >= limit) {
    draw = next_u64();
  }
  return draw % bound;
}

double RandomStream::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

double RandomStream::gamma(double shape) {
  check(shape > 0, "RandomStream::gamma needs a positive shape");
  if (shape < 1.0) {
    const double boost = std::pow(1.0 - uniform(), 1.0 / shape);
    return gamma(shape + 1.0) * boost;
  }
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = normal();
    const double v = std::pow(1.0 + c * x, 3.0);
    if (v > 0.0 && std::log(1.0 - uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) {
      return d * v;
    }
  }
}

}  // namespace sotto
