#include <sotto/optim/exchange/median_clip.h>

#include <algorithm>
#include <cmath>

namespace sotto {
namespace {

double length_of(std::span<const float> v) {
  double squares = 0;
  for (const float value : v) {
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  return std::sqrt(squares);
}

}  // namespace

MedianClip::MedianClip(int nodes)
    : lengths_(static_cast<std::size_t>(nodes)),
      by_length_(lengths_.size()),
      factors_(lengths_.size(), 1.0F) {}

void MedianClip::measure(Rank from, std::span<const float> message) {
  lengths_[static_cast<std::size_t>(from)] = length_of(message);
}

void MedianClip::settle() {
  std::ranges::fill(factors_, 1.0F);
  const auto [unread, end] =
      std::ranges::copy_if(lengths_, by_length_.begin(), [](double length) { return length > 0; });
  const auto moving = end - by_length_.begin();
  if (moving == 0) {
    return;
  }
  const auto middle = by_length_.begin() + (moving - 1) / 2;
  std::ranges::nth_element(by_length_.begin(), middle, end);
  for (std::size_t j = 0; j < lengths_.size(); ++j) {
    if (lengths_[j] > *middle) {
      factors_[j] = static_cast<float>(*middle / lengths_[j]);
    }
  }
}

}  // namespace sotto
