// A paper's rule taken down in double precision, beside the algorithm that has it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "optim/cluster.h"

namespace sotto::test {

using Row = std::vector<double>;
using Rows = std::vector<Row>;  ///< of all nodes

inline Rows rows_of(const std::vector<std::vector<float>>& models) {
  Rows rows;
  for (const auto& model : models) {
    rows.emplace_back(model.begin(), model.end());
  }
  return rows;
}

/// Σ_j W_ij x_j on a ring with weights ⅓.
inline Row mixed(const Rows& x, std::size_t i) {
  const std::size_t n = x.size();
  Row sum(x[i].size());
  for (std::size_t k = 0; k < sum.size(); ++k) {
    sum[k] = (x[(i + n - 1) % n][k] + x[i][k] + x[(i + 1) % n][k]) / 3;
  }
  return sum;
}

/// γ times the gradient of node `rank` at x.
inline Row step_of(const Quadratic& task, std::size_t rank, const Row& x, double rate) {
  const std::vector<float> at(x.begin(), x.end());
  std::vector<float> gradient(x.size());
  task(static_cast<Rank>(rank), 0, at, gradient);
  Row step(gradient.begin(), gradient.end());
  for (double& value : step) {
    value *= rate;
  }
  return step;
}

/// a + factor b
inline Row plus(Row a, const Row& b, double factor = 1) {
  for (std::size_t k = 0; k < a.size(); ++k) {
    a[k] += factor * b[k];
  }
  return a;
}

/// C of `topk`: the `keep` largest elements, and 0 elsewhere.
inline Row largest(const Row& v, std::size_t keep) {
  std::vector<std::size_t> order(v.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(
      order, [&](std::size_t a, std::size_t b) { return std::fabs(v[a]) > std::fabs(v[b]); });
  Row kept(v.size());
  for (std::size_t k = 0; k < keep; ++k) {
    kept[order[k]] = v[order[k]];
  }
  return kept;
}

/// The largest difference between models and rows.
inline double distance(const std::vector<std::vector<float>>& models, const Rows& rows) {
  double most = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t k = 0; k < rows[i].size(); ++k) {
      most = std::max(most, std::fabs(double{models[i][k]} - rows[i][k]));
    }
  }
  return most;
}

/// Five nodes on a ring, eight parameters, of which `topk:0.5` keeps kKept.
inline constexpr std::size_t kKept = 4;
inline ClusterOptions five_nodes(std::string algorithm, double rate) {
  return {.algorithm = std::move(algorithm),
          .compressor = "topk:0.5",
          .nodes = 5,
          .dimension = 8,
          .step = {.learning_rate = rate},
          .seed = 5,
          .allow_contract_violation = true};
}

}  // namespace sotto::test
