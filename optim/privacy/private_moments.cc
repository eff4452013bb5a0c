#include <sotto/optim/privacy/private_moments.h>

#include <cmath>

#include <sotto/base/check.h>

namespace sotto {
namespace {

constexpr double kGridSteps = 0x1p30;  // in 1
constexpr std::int64_t kMostRows = std::int64_t{1} << 32;

}  // namespace

PrivateMoments::PrivateMoments(std::size_t columns) : sums_(2 * columns) {}

void PrivateMoments::add(std::span<const double> row) {
  check(2 * row.size() == sums_.size(), "a value for each column");
  check(++rows_ < kMostRows, "sums hold fewer than 2^32 rows");
  for (std::size_t k = 0; k < row.size(); ++k) {
    check(std::abs(row[k]) <= 1, "values lie in −1 … 1");
    sums_[2 * k] += static_cast<std::int64_t>(std::nearbyint(row[k] * kGridSteps));
    sums_[2 * k + 1] += static_cast<std::int64_t>(std::nearbyint(row[k] * row[k] * kGridSteps));
  }
}

double PrivateMoments::sensitivity() const {
  return std::sqrt(1 + static_cast<double>(sums_.size()));
}

ReleasedMoments PrivateMoments::release(double noise_multiplier, const SecretKey& key) const {
  check(noise_multiplier >= 0 && noise_multiplier <= 1e6, "noise that whole numbers hold");
  check(sums_.size() <= std::size_t{1} << 18, "noise that whole numbers hold");
  SecretStream stream(key, SecretPurpose::noise, 0);
  const double deviation = noise_multiplier * sensitivity() * kGridSteps;
  const auto released = [&](std::int64_t exact) {
    const double noise = noise_multiplier > 0 ? std::nearbyint(deviation * stream.normal()) : 0;
    return static_cast<double>(exact + static_cast<std::int64_t>(noise)) / kGridSteps;
  };
  ReleasedMoments moments;
  moments.rows = released(rows_ * static_cast<std::int64_t>(kGridSteps));
  for (std::size_t k = 0; k < sums_.size(); k += 2) {
    moments.sums.push_back(released(sums_[k]));
    moments.squares.push_back(released(sums_[k + 1]));
  }
  return moments;
}

}  // namespace sotto
