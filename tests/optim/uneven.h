// Quadratics whose curvatures differ from node to node: what the nodes' own optima average to is
// not the optimum, and mixing that weighs nodes unequally shows.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sotto/base/philox.h>

namespace sotto::test {

/// f_i(x) = ½ Σ_k h_ik (x_k − c_ik)², with h from 0.5 to 1.5 and c ~ N(1, 1).
class Uneven {
 public:
  Uneven(std::size_t nodes, std::size_t dimension, std::uint64_t seed)
      : h_(nodes, std::vector<double>(dimension)), c_(h_) {
    for (std::size_t i = 0; i < nodes; ++i) {
      RandomStream stream({.seed = seed, .rank = static_cast<Rank>(i), .purpose = Purpose::test});
      for (std::size_t k = 0; k < dimension; ++k) {
        h_[i][k] = 0.5 + stream.uniform();
        c_[i][k] = 1 + stream.normal();
      }
    }
  }

  void operator()(Rank rank, Round /*round*/, std::span<const float> x, std::span<float> g) const {
    const auto i = static_cast<std::size_t>(rank);
    for (std::size_t k = 0; k < x.size(); ++k) {
      g[k] = static_cast<float>(slope(i, k, static_cast<double>(x[k])));
    }
  }

  /// ∂f_i/∂x_k at x_k = x
  double slope(std::size_t i, std::size_t k, double x) const { return h_[i][k] * (x - c_[i][k]); }

  /// f(x) − min f, where f is the mean of all f_i.
  template <typename T>
  double excess(const std::vector<T>& x) const {
    double excess = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      double curvature = 0;
      double pull = 0;
      for (std::size_t i = 0; i < h_.size(); ++i) {
        curvature += h_[i][k] / static_cast<double>(h_.size());
        pull += h_[i][k] * c_[i][k] / static_cast<double>(h_.size());
      }
      excess += 0.5 * curvature * std::pow(static_cast<double>(x[k]) - pull / curvature, 2);
    }
    return excess;
  }

  /// The largest excess of any of these models.
  double worst_excess(const std::vector<std::vector<float>>& models) const {
    double worst = 0;
    for (const auto& model : models) {
      worst = std::fmax(worst, excess(model));
    }
    return worst;
  }

 private:
  std::vector<std::vector<double>> h_;
  std::vector<std::vector<double>> c_;
};

}  // namespace sotto::test
