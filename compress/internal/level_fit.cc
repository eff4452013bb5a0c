#include "level_fit.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace sotto::internal {
namespace {

constexpr std::size_t kBins = 256;
constexpr int kMostMoves = 8;

std::uint32_t bits_of_magnitude(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU;
}

float mean_of_magnitudes(std::span<const float> values) {
  // Sums of their own, as one alone would wait for each addition.
  std::array<double, 8> sums{};
  std::size_t i = 0;
  for (; i + sums.size() <= values.size(); i += sums.size()) {
    for (std::size_t lane = 0; lane < sums.size(); ++lane) {
      sums[lane] += static_cast<double>(std::abs(values[i + lane]));
    }
  }
  double sum = 0;
  for (; i < values.size(); ++i) {
    sum += static_cast<double>(std::abs(values[i]));
  }
  for (const double part : sums) {
    sum += part;
  }
  return static_cast<float>(sum / static_cast<double>(values.size()));
}

/// Each distinct magnitude is a level, where there are no more of them than levels.
bool give_each_its_own(std::span<const float> values, std::span<float> levels,
                       std::span<std::uint8_t> cells) {
  std::array<float, kMostLevels> found{};
  std::size_t count = 0;
  for (const float value : values) {
    const float magnitude = std::abs(value);
    std::size_t place = 0;
    while (place < count && found[place] < magnitude) {
      ++place;
    }
    if (place < count && found[place] == magnitude) {
      continue;
    }
    if (count == levels.size()) {
      return false;
    }
    for (std::size_t i = count++; i > place; --i) {
      found[i] = found[i - 1];
    }
    found[place] = magnitude;
  }
  std::ranges::copy(std::span(found).first(levels.size()), levels.begin());
  const auto distinct = std::span(found).first(count);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto place = std::ranges::lower_bound(distinct, std::abs(values[i]));
    cells[i] = static_cast<std::uint8_t>(place - distinct.begin());
  }
  return true;
}

/// Within 6 %, and the same everywhere: a third of the exponent, and of the mantissa for good
/// measure.
double about_cube_root(double value) {
  constexpr std::uint64_t kBias = std::uint64_t{1023 - 1023 / 3} << 52U;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) / 3 + kBias);
}

/// Magnitudes by their bits, which are about their logarithms, so that all scales are told apart.
class Bins {
 public:
  explicit Bins(std::span<const float> values) {
    std::uint32_t highest = 0;
    lowest_ = ~std::uint32_t{0};
    for (const float value : values) {
      lowest_ = std::min(lowest_, bits_of_magnitude(value));
      highest = std::max(highest, bits_of_magnitude(value));
    }
    shift_ = std::max(0, static_cast<int>(std::bit_width(highest - lowest_)) - kBits);
    for (const float value : values) {
      const std::size_t at = bin(value);
      sums_[at] += static_cast<double>(std::abs(value));
      ++counts_[at];
    }
  }

  std::size_t bin(float value) const { return (bits_of_magnitude(value) - lowest_) >> shift_; }
  double sum(std::size_t bin) const { return sums_[bin]; }
  std::uint32_t count(std::size_t bin) const { return counts_[bin]; }

 private:
  static constexpr int kBits = 8;
  static_assert(kBins == std::size_t{1} << kBits);

  std::uint32_t lowest_;
  int shift_;
  std::array<double, kBins> sums_{};
  std::array<std::uint32_t, kBins> counts_{};
};

/// The bins that hold something, by ascending magnitude, in cells of neighbours.
class Cells {
 public:
  Cells(const Bins& bins, std::size_t cells) : cells_(cells) {
    for (std::size_t at = 0; at < kBins; ++at) {
      if (bins.count(at) > 0) {
        bin_[size_] = static_cast<std::uint16_t>(at);
        mean_[size_] = bins.sum(at) / bins.count(at);
        sum_before_[size_ + 1] = sum_before_[size_] + bins.sum(at);
        count_before_[size_ + 1] = count_before_[size_] + bins.count(at);
        ++size_;
      }
    }
    ends_[cells_] = size_;
  }

  /// The best levels are as dense as the cube root of the values' density (P. F. Panter and
  /// W. Dite 1951): cells of about as much of the sum of (n w²)^(1/3) over bins of n values and
  /// width w, which is as their magnitudes are, with one bin at least as long as there are some.
  void begin() {
    std::array<double, kBins + 1> before{};
    for (std::size_t at = 0; at < size_; ++at) {
      const double sum = sum_before_[at + 1] - sum_before_[at];
      before[at + 1] = before[at] + about_cube_root(sum * mean_[at]);
    }
    std::size_t at = 0;
    for (std::size_t cell = 1; cell < cells_; ++cell) {
      const std::size_t later = cells_ - cell;
      const std::size_t last = size_ > later ? size_ - later : 0;
      const double wanted = before[size_] * static_cast<double>(cell) / static_cast<double>(cells_);
      at = std::min(at + 1, size_);
      while (at < last && before[at] < wanted) {
        ++at;
      }
      ends_[cell] = at;
    }
  }

  /// Moves each bin to the cell with the nearest mean. False: nothing has moved.
  bool move() {
    for (std::size_t cell = 0; cell < cells_; ++cell) {
      const std::size_t from = ends_[cell];
      const std::size_t to = ends_[cell + 1];
      if (from < to) {
        level_[cell] = (sum_before_[to] - sum_before_[from]) /
                       static_cast<double>(count_before_[to] - count_before_[from]);
      }
    }
    bool moved = false;
    for (std::size_t cell = 1; cell < cells_; ++cell) {
      const double border = (level_[cell - 1] + level_[cell]) / 2;
      const auto means = std::span(mean_).first(size_);
      const auto above = std::ranges::upper_bound(means, border) - means.begin();
      const auto at = std::max(ends_[cell - 1], static_cast<std::size_t>(above));
      moved = moved || at != ends_[cell];
      ends_[cell] = at;
    }
    return moved;
  }

  /// The mean of each cell, from its own sum, and the cell of each bin.
  void finish(const Bins& bins, std::span<float> levels,
              std::span<std::uint8_t, kBins> cell_of) const {
    for (std::size_t cell = 0; cell < cells_; ++cell) {
      double sum = 0;
      std::size_t count = 0;
      for (std::size_t at = ends_[cell]; at < ends_[cell + 1]; ++at) {
        sum += bins.sum(bin_[at]);
        count += bins.count(bin_[at]);
        cell_of[bin_[at]] = static_cast<std::uint8_t>(cell);
      }
      levels[cell] = count == 0 ? 0.0F : static_cast<float>(sum / static_cast<double>(count));
    }
  }

 private:
  std::size_t cells_;
  std::size_t size_ = 0;
  std::array<std::uint16_t, kBins> bin_{};
  std::array<double, kBins> mean_{};
  std::array<double, kBins + 1> sum_before_{};
  std::array<std::size_t, kBins + 1> count_before_{};
  std::array<std::size_t, kMostLevels + 1> ends_{};
  std::array<double, kMostLevels> level_{};
};

}  // namespace

void fit_levels(std::span<const float> values, std::span<float> levels,
                std::span<std::uint8_t> cells) {
  if (levels.size() == 1) {
    levels[0] = mean_of_magnitudes(values);
    std::ranges::fill(cells, std::uint8_t{0});
    return;
  }
  if (give_each_its_own(values, levels, cells)) {
    return;
  }
  const Bins bins(values);
  Cells fitted(bins, levels.size());
  fitted.begin();
  for (int moves = 0; moves < kMostMoves && fitted.move(); ++moves) {
  }
  std::array<std::uint8_t, kBins> cell_of{};
  fitted.finish(bins, levels, cell_of);
  for (std::size_t i = 0; i < values.size(); ++i) {
    cells[i] = cell_of[bins.bin(values[i])];
  }
}

}  // namespace sotto::internal
