#include <sotto/optim/robust/clipped.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace sotto {
namespace {

constexpr double kSetAside = std::numeric_limits<double>::infinity();

}  // namespace

Clipped::Clipped(Radius radius, double value, std::size_t neighbours, const Ops& ops)
    : radius_(radius), value_(value), ops_(ops) {
  distances_.reserve(neighbours);
}

std::string Clipped::spec() const {
  switch (radius_) {
    case Radius::fixed:
      return fmt::format("clipped:{}", value_);
    case Radius::second_largest:
      return "clipped:second-largest";
    case Radius::automatic:
      break;
  }
  return value_ == kDefaultReach ? "clipped:auto" : fmt::format("clipped:auto:{}", value_);
}

std::size_t Clipped::aggregate(const Neighbourhood& models, std::span<float> out) {
  distances_.clear();
  for (const ReceivedModel& from : models.received) {
    ops_.subtract(from.model, models.own, from.model);  // Δ_j, in place
    const double squares = ops_.sum_squares(from.model);
    distances_.push_back(std::isfinite(squares) ? std::sqrt(squares) : kSetAside);
  }
  switch (radius_) {
    case Radius::fixed:
      tau_ = value_;
      break;
    case Radius::second_largest:
      tau_ = second_largest();
      break;
    case Radius::automatic:
      tau_ = automatic(models);
      break;
  }
  ops_.copy(models.own, out);
  std::size_t idle = 0;
  for (std::size_t j = 0; j < distances_.size(); ++j) {
    const double distance = distances_[j];
    if (distance == kSetAside || !(tau_ > 0)) {
      ++idle;
      continue;
    }
    const double factor = distance > tau_ ? tau_ / distance : 1;
    const auto& [difference, weight] = models.received[j];
    ops_.axpy(static_cast<float>(double{weight} * factor), difference, out);
  }
  return idle;
}

double Clipped::second_largest() const {
  double largest = 0;
  double second = 0;
  std::size_t counted = 0;
  for (const double distance : distances_) {
    if (distance == kSetAside) {
      continue;
    }
    ++counted;
    second = std::max(second, std::min(largest, distance));
    largest = std::max(largest, distance);
  }
  return counted == 1 ? largest : second;
}

double Clipped::automatic(const Neighbourhood& models) {
  const double step = std::sqrt(ops_.sum_squares(models.step));
  double nearest = kSetAside;
  for (const double distance : distances_) {
    nearest = distance > 0 ? std::min(nearest, distance) : nearest;
  }
  if (nearest == kSetAside || !std::isfinite(step)) {
    return 0;
  }
  for (std::size_t j = 0; j < distances_.size(); ++j) {
    double& distance = distances_[j];
    // Not ≤ 0 also where the product is no number.
    if (distance > kOutlier * nearest || !(ops_.dot(models.received[j].model, models.step) <= 0)) {
      distance = kSetAside;
    }
  }
  const double reach = value_ * step;
  return nearest <= reach ? nearest : reach * (reach / nearest);
}

}  // namespace sotto
