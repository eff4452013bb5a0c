#include <sotto/sites/core/pull_bound.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <sotto/sites/core/lower_median.h>
#include <sotto/sites/core/pieces.h>

namespace sotto::sites {

double length_of(std::span<const float> x) {
  return std::sqrt(wide_sum(x.size(), [x](std::size_t k) {
    return static_cast<double>(x[k]) * static_cast<double>(x[k]);
  }));
}

double distance_between(std::span<const float> x, std::span<const float> y) {
  return std::sqrt(squared_distance(x, y));
}

double squared_distance(std::span<const float> x, std::span<const float> y) {
  return wide_sum(x.size(), [x, y](std::size_t k) {
    const double difference = static_cast<double>(x[k]) - static_cast<double>(y[k]);
    return difference * difference;
  });
}

void PullBound::stepping(std::span<const float> z) {
  steps_ = true;
  moved_.reset();
  if (!std::exchange(stepped_, true)) {
    from_.assign(z.begin(), z.end());
  }
}

void PullBound::stepped_from(std::vector<float>& z, double distance) {
  steps_ = true;
  moved_.reset();
  if (!std::exchange(stepped_, true)) {
    from_.resize(z.size());
    std::swap(from_, z);
    moved_ = distance;
  }
}

void PullBound::arrived(std::span<const float> z) {
  if (stepped_) {  // a site that takes no steps any more goes on to follow those that do
    const double moved = moved_ ? *moved_ : distance_between(z, from_);
    step_ = std::max(moved, step_ * (1 - 1 / limits_.memory));
    stepped_ = false;
  }
}

double PullBound::longest(double length) const {
  if (!steps_ && pulls_.size() >= kEnough) {
    return std::max(kUsual * lower_median(pulls_), kResolved * length);
  }
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

double PullBound::reach(double length) const {
  if (steps_) {
    return longest(length);
  }
  const double medians = kept_ ? kUneven : 1;
  return pulls_.size() < kEnough ? medians * length
                                 : std::max(medians * lower_median(pulls_), kResolved * length);
}

void PullBound::pulled(double distance) {
  if (!kept_ && steps_) {
    return;
  }
  pulls_.push_back(distance);
  if (pulls_.size() > kRemembered) {
    pulls_.pop_front();
  }
}

Status PullBound::load(ByteReader& in) {
  step_ = in.read<double>();
  steps_ = step_ > 0;
  if (in.failed() || !std::isfinite(step_) || step_ < 0) {
    return {Fault::malformed, "checkpoint has a longest step that cannot be"};
  }
  return {};
}

}  // namespace sotto::sites
