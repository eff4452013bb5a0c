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

PullVerdict PullReach::judge(double distance) const {
  return {.cut = distance > longest,
          .absurd = distance > std::max(PullBound::kAbsurd * longest, PullBound::kFar * length),
          .part = distance > reach ? reach / distance : 1};
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

bool PullBound::has_enough_pulls() const {
  std::size_t all = 0;
  for (const auto& pulls : pulls_) {
    all += counts(pulls) ? pulls.lengths.size() : 0;
  }
  return all >= kEnough;
}

double PullBound::usual() const {
  std::vector<double> medians;
  for (const auto& pulls : pulls_) {
    if (counts(pulls)) {
      medians.push_back(lower_median(pulls.lengths));
    }
  }
  return lower_median(medians);
}

double PullBound::longest(double length) const {
  const bool enough = has_enough_pulls();
  if (!steps_ && enough) {
    return std::max(kUsual * usual(), kResolved * length);
  }
  if (!(step_ > 0)) {
    return std::numeric_limits<double>::infinity();
  }
  const double steps = std::max(limits_.most * step_, kResolved * length);
  if (!kept_) {
    return steps;
  }
  if (!enough) {
    // With error feedback v is at most 2 ‖x‖ / kept long, and C(v) no longer; twice that, as the
    // neighbour's model is another one.
    return std::max(steps, 2 * (1 + 2 / *kept_) * length);
  }
  return std::max(steps, kUsual * usual());
}

double PullBound::reach(double length) const {
  if (steps_) {
    return longest(length);
  }
  const double medians = kept_ ? kUneven : 1;
  return has_enough_pulls() ? std::max(medians * usual(), kResolved * length) : medians * length;
}

void PullBound::pulled(std::size_t peer, double distance) {
  if (!kept_ && steps_) {
    return;
  }
  pulls_.resize(std::max(pulls_.size(), peer + 1));
  Pulls& own = pulls_[peer];
  own.latest = ++all_pulls_;
  own.lengths.push_back(distance);
  if (own.lengths.size() > kRemembered) {
    own.lengths.pop_front();
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
