#include "staged_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <sotto/base/philox.h>

namespace sotto::bench {
namespace {

constexpr std::size_t kClasses = 10;

Eigen::Index index(std::size_t value) { return static_cast<Eigen::Index>(value); }

/// Sizes in front of, between and behind the layers of one stage.
std::vector<std::size_t> sizes_of(int stage, int stages) {
  const std::vector<std::size_t> all = {28UL * 28, kHidden, kHidden, kClasses};
  if (stages == 3) {
    return {all[static_cast<std::size_t>(stage)], all[static_cast<std::size_t>(stage) + 1]};
  }
  return stage == 0 ? std::vector{all[0], all[1]} : std::vector{all[1], all[2], all[3]};
}

std::size_t parameters_of(const std::vector<std::size_t>& sizes) {
  std::size_t count = 0;
  for (std::size_t l = 0; l + 1 < sizes.size(); ++l) {
    count += (sizes[l] + 1) * sizes[l + 1];
  }
  return count;
}

}  // namespace

Layers::Layers(std::span<const float> parameters, int stage, int stages)
    : w_(parameters), sizes_(sizes_of(stage, stages)), last_(stage + 1 == stages) {}

std::vector<Matrix> Layers::forward(Matrix x) const {
  std::vector<Matrix> rows = {std::move(x)};
  std::size_t at = 0;
  for (std::size_t l = 0; l + 1 < sizes_.size(); ++l) {
    Matrix y = rows.back() * weight(at, l);
    y.rowwise() += bias(at, l).row(0);
    if (rectified(l)) {
      y = y.cwiseMax(0.0F);
    }
    rows.push_back(std::move(y));
    at += (sizes_[l] + 1) * sizes_[l + 1];
  }
  return rows;
}

Matrix Layers::backward(const std::vector<Matrix>& rows, Matrix dy,
                        std::span<float> gradient) const {
  std::size_t end = w_.size();
  for (std::size_t l = sizes_.size() - 1; l-- > 0;) {
    const std::size_t at = end - (sizes_[l] + 1) * sizes_[l + 1];
    if (rectified(l)) {
      dy = (rows[l + 1].array() > 0).select(dy, 0);
    }
    Eigen::Map<Matrix> dw(&gradient[at], index(sizes_[l]), index(sizes_[l + 1]));
    Eigen::Map<Matrix> db(&gradient[at + sizes_[l] * sizes_[l + 1]], 1, index(sizes_[l + 1]));
    dw.noalias() += rows[l].transpose() * dy;
    db += dy.colwise().sum();
    dy = dy * weight(at, l).transpose();
    end = at;
  }
  return dy;
}

double Layers::flops(std::size_t rows) const {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(w_.size());
}

Rows Layers::weight(std::size_t at, std::size_t l) const {
  return {&w_[at], index(sizes_[l]), index(sizes_[l + 1])};
}

Rows Layers::bias(std::size_t at, std::size_t l) const {
  return {&w_[at + sizes_[l] * sizes_[l + 1]], 1, index(sizes_[l + 1])};
}

std::vector<std::vector<float>> initial_stages(int stages, std::uint64_t seed) {
  std::vector<std::vector<float>> models;
  for (int at = 0; at < stages; ++at) {
    const auto sizes = sizes_of(at, stages);
    auto& w = models.emplace_back(parameters_of(sizes));
    std::size_t begin = 0;
    for (std::size_t l = 0; l + 1 < sizes.size(); ++l) {
      RandomStream random({.seed = seed, .round = sizes[l] * 1000 + sizes[l + 1]});
      const float bound = std::sqrt(6.0F / static_cast<float>(sizes[l]));
      for (std::size_t k = 0; k < sizes[l] * sizes[l + 1]; ++k) {
        w[begin + k] = bound * static_cast<float>(2 * random.uniform() - 1);
      }
      begin += (sizes[l] + 1) * sizes[l + 1];
    }
  }
  return models;
}

Matrix features(const Examples& from, std::span<const std::uint32_t> which) {
  Matrix x(static_cast<Eigen::Index>(which.size()), static_cast<Eigen::Index>(from.features()));
  for (std::size_t i = 0; i < which.size(); ++i) {
    from.copy_row(which[i], {x.row(static_cast<Eigen::Index>(i)).data(), from.features()});
  }
  return x;
}

double cross_entropy(Matrix& scores, const Examples& from, std::span<const std::uint32_t> which,
                     std::size_t& right) {
  double loss = 0;
  for (std::size_t i = 0; i < which.size(); ++i) {
    auto row = scores.row(static_cast<Eigen::Index>(i));
    const auto label = static_cast<Eigen::Index>(from.labels()[which[i]]);
    Eigen::Index best = 0;
    const float most = row.maxCoeff(&best);
    right += best == label ? 1U : 0U;
    row = (row.array() - most).exp();
    row /= row.sum();
    loss -= std::log(std::max(1e-30, static_cast<double>(row(label))));
    row(label) -= 1;
  }
  return loss;
}

Quality evaluate(const std::vector<std::vector<float>>& stages, const Examples& examples,
                 std::size_t count) {
  std::vector<std::uint32_t> which(count);
  std::iota(which.begin(), which.end(), 0U);
  Matrix rows = features(examples, which);
  const auto last = static_cast<int>(stages.size());
  for (int at = 0; at < last; ++at) {
    const Layers layers(stages[static_cast<std::size_t>(at)], at, last);
    rows = layers.forward(std::move(rows)).back();
  }
  std::size_t right = 0;
  const double loss = cross_entropy(rows, examples, which, right);
  const auto all = static_cast<double>(count);
  return {.loss = loss / all, .accuracy = static_cast<double>(right) / all};
}

}  // namespace sotto::bench
