// What tests compare of two algorithms: what they save, and how far their vectors are apart.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/optim/algorithm.h>

namespace sotto::test {

inline std::vector<std::byte> saved(const Algorithm& algorithm) {
  ByteBuffer buffer;
  algorithm.save(buffer);
  return std::move(buffer).take();
}

/// max_k |a_k − b_k|
inline double largest_gap(std::span<const float> a, std::span<const float> b) {
  double gap = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    gap = std::fmax(gap, std::fabs(static_cast<double>(a[k] - b[k])));
  }
  return gap;
}

}  // namespace sotto::test
