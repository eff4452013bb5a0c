#include <sotto/console/axis.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace sotto::console {
namespace {

constexpr int kTicks = 5;
constexpr int kMostDecades = 6;  ///< with a label each

std::vector<double> linear_ticks(double low, double high) {
  const double rough = (high - low) / kTicks;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    step = factor * power;
    if (step >= rough) {
      break;
    }
  }
  std::vector<double> found;
  const double first = std::ceil(low / step) * step;
  const auto count = static_cast<int>(std::floor((high - first) / step + 1e-9)) + 1;
  for (int i = 0; i < count; ++i) {
    const double v = first + i * step;
    found.push_back(std::abs(v) < step * 1e-9 ? 0 : v);
  }
  return found;
}

}  // namespace

bool Axis::takes(double value) const { return std::isfinite(value) && (!log_ || value > 0); }

double Axis::scaled(double value) const { return log_ ? std::log10(value) : value; }

void Axis::include(double value) {
  const double v = scaled(value);
  low_ = std::min(low_, v);
  high_ = std::max(high_, v);
}

void Axis::cut_above(double value) {
  if (takes(value) && scaled(value) > low_) {
    high_ = std::min(high_, scaled(value));
  }
}

void Axis::settle() {
  if (low_ > high_) {
    low_ = 0;
    high_ = 1;
  }
  if (low_ == high_) {
    const double margin = low_ == 0 ? 1 : std::abs(low_) * 0.1;
    low_ -= margin;
    high_ += margin;
  }
}

double Axis::low() const { return log_ ? std::pow(10, low_) : low_; }

double Axis::high() const { return log_ ? std::pow(10, high_) : high_; }

double Axis::pixel(double value) const {
  return from_ + (scaled(value) - low_) / (high_ - low_) * (to_ - from_);
}

std::vector<double> Axis::ticks() const { return log_ ? log_ticks() : linear_ticks(low_, high_); }

/// Powers of ten, of a long range every second, third …; of a shorter range also their doubles
/// and fives, of a still shorter one what a linear axis has.
std::vector<double> Axis::log_ticks() const {
  const int every = static_cast<int>(std::ceil((high_ - low_) / kMostDecades));
  if (every > 1) {
    std::vector<double> found;
    const int first = static_cast<int>(std::ceil(low_ / every)) * every;
    for (int decade = first; decade <= high_; decade += every) {
      found.push_back(std::pow(10, decade));
    }
    return found;
  }
  for (const auto& factors : {std::vector<double>{1}, std::vector<double>{1, 2, 5}}) {
    std::vector<double> found;
    for (int decade = static_cast<int>(std::floor(low_)); decade <= high_; ++decade) {
      for (const double factor : factors) {
        const double at = decade + std::log10(factor);
        if (at >= low_ - 1e-9 && at <= high_ + 1e-9) {
          found.push_back(factor * std::pow(10, decade));
        }
      }
    }
    if (found.size() >= 3) {
      return found;
    }
  }
  return linear_ticks(std::pow(10, low_), std::pow(10, high_));
}

std::string tick_label(double value) {
  constexpr std::array<std::pair<double, const char*>, 3> kUnits = {
      {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
  for (const auto& [size, unit] : kUnits) {
    if (std::abs(value) >= size && std::abs(value) < 1e12) {
      return fmt::format("{:.3g}{}", value / size, unit);
    }
  }
  return fmt::format("{:.3g}", value);
}

}  // namespace sotto::console
