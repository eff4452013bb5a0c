#include <sotto/optim/step_rules/gradient_clip.h>

#include <cmath>

#include <sotto/kernels/norm.h>

namespace sotto {

void GradientClip::take(std::span<const float> gradient, std::span<float> out) const {
  constexpr double kGuard = 1e-6;
  ops_->copy(gradient, out);
  if (std::isinf(max_norm_)) {
    return;
  }
  const double factor = max_norm_ / (norm(gradient, *ops_) + kGuard);
  if (factor < 1) {
    ops_->scale(static_cast<float>(factor), out);
  }
}

}  // namespace sotto
