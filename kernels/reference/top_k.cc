#include <algorithm>
#include <bit>

#include <sotto/base/check.h>

#include "reference_ops.h"

namespace sotto {
namespace {

/// The bits of |x|: for finite floats they order as the magnitudes do.
std::uint32_t magnitude_bits(float x) { return std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFU; }

std::size_t count_at_least(std::span<const float> x, std::uint32_t bound) {
  return static_cast<std::size_t>(
      std::ranges::count_if(x, [bound](float value) { return magnitude_bits(value) >= bound; }));
}

}  // namespace

TopK ReferenceOps::top_k(std::span<const float> x, std::size_t k) const {
  check(k >= 1 && k <= x.size(), "top_k: k outside 1 … size");
  // The k-th largest magnitude is the largest bound that k elements reach; found bit by bit.
  std::uint32_t threshold = 0;
  for (int bit = 30; bit >= 0; --bit) {
    const std::uint32_t candidate = threshold | (1U << bit);
    if (count_at_least(x, candidate) >= k) {
      threshold = candidate;
    }
  }
  return {.threshold = threshold, .ties = k - count_at_least(x, threshold + 1)};
}

void ReferenceOps::top_k_gather(std::span<const float> x, const TopK& top,
                                std::span<std::uint32_t> indices, std::span<float> values) const {
  check(indices.size() == values.size(), "top_k_gather: lengths differ");
  std::size_t ties = top.ties;
  std::size_t found = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint32_t magnitude = magnitude_bits(x[i]);
    const bool tied = magnitude == top.threshold && ties > 0;
    if (magnitude <= top.threshold && !tied) {
      continue;
    }
    ties -= tied ? 1 : 0;
    check(found < indices.size(), "top_k_gather: more elements than k");
    indices[found] = static_cast<std::uint32_t>(i);
    values[found++] = x[i];
  }
  check(found == indices.size(), "top_k_gather: fewer elements than k");
}

std::size_t ReferenceOps::gather_above(std::span<const float> x, std::uint32_t threshold,
                                       std::span<std::uint32_t> indices,
                                       std::span<float> values) const {
  check(indices.size() == values.size(), "gather_above: lengths differ");
  std::size_t found = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (magnitude_bits(x[i]) <= threshold) {
      continue;
    }
    if (found < indices.size()) {
      indices[found] = static_cast<std::uint32_t>(i);
      values[found] = x[i];
    }
    ++found;
  }
  return found;
}

}  // namespace sotto
