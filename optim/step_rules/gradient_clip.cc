#include <sotto/optim/step_rules/gradient_clip.h>

#include <algorithm>
#include <cmath>

#include <sotto/kernels/norm.h>

namespace sotto {

float GradientClip::factor(std::span<const float> gradient) const {
  constexpr double kGuard = 1e-6;
  if (std::isinf(max_norm_)) {
    return 1;
  }
  return static_cast<float>(std::min(1.0, max_norm_ / (norm(gradient, *ops_) + kGuard)));
}

void GradientClip::take(std::span<const float> gradient, std::span<float> out) const {
  const float factor = this->factor(gradient);
  ops_->copy(gradient, out);
  if (factor != 1) {
    ops_->scale(factor, out);
  }
}

}  // namespace sotto
