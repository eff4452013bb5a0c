#include <sotto/sites/core/pull_bound.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <sotto/sites/core/lower_median.h>

namespace sotto::sites {

double length_of(std::span<const float> x) {
  double sum = 0;
  for (const float value : x) {
    sum += static_cast<double>(value) * static_cast<double>(value);
  }
  return std::sqrt(sum);
}

double distance_between(std::span<const float> x, std::span<const float> y) {
  double sum = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double difference = static_cast<double>(x[k]) - static_cast<double>(y[k]);
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

void PullBound::stepping(std::span<const float> z) {
  if (from_.empty()) {
    from_.assign(z.begin(), z.end());
  }
}

void PullBound::arrived(std::span<const float> z) {
  if (!from_.empty()) {  // a site that takes no steps any more goes on to follow those that do
    step_ = std::max(distance_between(z, from_), step_ * (1 - 1 / limits_.memory));
    from_.clear();
  }
}

double PullBound::longest(double length) const {
  if (!(step_ > 0)) {
    return std::numeric_limits<double>::infinity();
  }
  const double steps = std::max(limits_.most * step_, kResolved * length);
  if (!kept_) {
    return steps;
  }
  if (pulls_.size() < kEnough) {
    // With error feedback v is at most 2 ‖x‖ / kept long, and C(v) no longer; twice that, as the
    // neighbour's model is another one.
    return std::max(steps, 2 * (1 + 2 / *kept_) * length);
  }
  return std::max(steps, kUsual * lower_median(pulls_));
}

void PullBound::pulled(double distance) {
  if (!kept_) {
    return;
  }
  pulls_.push_back(distance);
  if (pulls_.size() > kRemembered) {
    pulls_.pop_front();
  }
}

Status PullBound::load(ByteReader& in) {
  step_ = in.read<double>();
  if (in.failed() || !std::isfinite(step_) || step_ < 0) {
    return {Fault::malformed, "checkpoint has a longest step that cannot be"};
  }
  return {};
}

}  // namespace sotto::sites
