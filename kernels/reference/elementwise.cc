#include <algorithm>
#include <cmath>

#include <sotto/base/check.h>

#include "reference_ops.h"

namespace sotto {

void ReferenceOps::fill(float value, std::span<float> y) const { std::ranges::fill(y, value); }

void ReferenceOps::copy(std::span<const float> x, std::span<float> y) const {
  check(x.size() == y.size(), "copy: lengths differ");
  std::ranges::copy(x, y.begin());
}

void ReferenceOps::scale(float a, std::span<float> y) const {
  for (float& value : y) {
    value = a * value;
  }
}

void ReferenceOps::axpy(float a, std::span<const float> x, std::span<float> y) const {
  check(x.size() == y.size(), "axpy: lengths differ");
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = y[i] + a * x[i];
  }
}

bool ReferenceOps::combine(std::span<const Summand> summands, std::span<float> out) const {
  check(!summands.empty(), "combine: at least one summand");
  check(std::ranges::all_of(summands, [&](const Summand& s) { return s.x.size() == out.size(); }),
        "combine: lengths differ");
  bool finite = true;
  for (std::size_t i = 0; i < out.size(); ++i) {
    float sum = summands[0].a * summands[0].x[i];
    for (const Summand& summand : summands.subspan(1)) {
      sum = sum + summand.a * summand.x[i];
    }
    out[i] = sum;
    finite = finite && std::isfinite(sum);
  }
  return finite;
}

void ReferenceOps::subtract(std::span<const float> x, std::span<const float> y,
                            std::span<float> out) const {
  check(x.size() == y.size() && x.size() == out.size(), "subtract: lengths differ");
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = x[i] - y[i];
  }
}

void ReferenceOps::adam(std::span<const float> g, float beta1, float beta2, float step,
                        float root_scale, float epsilon, std::span<float> m, std::span<float> v,
                        std::span<float> out) const {
  check(g.size() == m.size() && g.size() == v.size() && g.size() == out.size(),
        "adam: lengths differ");
  const float rest1 = 1.0F - beta1;
  const float rest2 = 1.0F - beta2;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const float gradient = g[i];
    m[i] = beta1 * m[i] + rest1 * gradient;
    v[i] = beta2 * v[i] + (rest2 * gradient) * gradient;
    // A coordinate that never had a gradient would be 0 / ε, or 0 / 0 when ε is 0.
    out[i] = m[i] == 0.0F ? 0.0F : (step * m[i]) / (std::sqrt(v[i]) * root_scale + epsilon);
  }
}

}  // namespace sotto
