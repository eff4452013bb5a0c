#include "eigenvalues.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <Eigen/Dense>

namespace sotto::internal {
namespace {

constexpr std::size_t kDenseNodes = 256;
constexpr std::size_t kFirstCheck = 32;
/// An end has converged when a quarter more iterations move it by less than this.
constexpr double kRelativeTolerance = 1e-9;
constexpr double kAbsoluteTolerance = 1e-13;
constexpr double kBreakdown = 1e-14;
/// Elements touched in about a minute; a line of some 60,000 nodes reaches it.
constexpr double kMostWork = 4e9;

/// The symmetric tridiagonal matrix that Lanczos builds: β_k couples α_k and α_{k+1}.
struct Tridiagonal {
  std::vector<double> alpha;
  std::vector<double> beta;

  double scale() const {
    double largest = 0;
    for (std::size_t k = 0; k < alpha.size(); ++k) {
      const double below = k > 0 ? std::abs(beta[k - 1]) : 0.0;
      const double above = k < beta.size() ? std::abs(beta[k]) : 0.0;
      largest = std::max(largest, std::abs(alpha[k]) + below + above);
    }
    return largest;
  }

  /// How many eigenvalues lie below x: the negative pivots of T − x I (Sylvester's inertia).
  std::size_t count_below(double x) const {
    constexpr double kTiny = std::numeric_limits<double>::min();
    std::size_t count = 0;
    double pivot = 1;
    for (std::size_t k = 0; k < alpha.size(); ++k) {
      const double coupling = k > 0 ? beta[k - 1] * beta[k - 1] / pivot : 0.0;
      pivot = alpha[k] - x - coupling;
      if (std::abs(pivot) < kTiny) {
        pivot = -kTiny;
      }
      count += pivot < 0 ? 1 : 0;
    }
    return count;
  }

  /// Eigenvalue number `index` in ascending order, by bisection to the last bit of the scale.
  double eigenvalue(std::size_t index) const {
    const double bound = scale();  // Gershgorin
    double low = -bound;
    double high = bound;
    while (high - low > bound * 0x1p-52) {
      const double middle = low + (high - low) / 2;
      (count_below(middle) > index ? high : low) = middle;
    }
    return low + (high - low) / 2;
  }

  ExtremeEigenvalues extremes() const { return {eigenvalue(0), eigenvalue(alpha.size() - 1)}; }
};

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void scale_by(double factor, std::vector<double>& v) {
  for (double& value : v) {
    value *= factor;
  }
}

bool settled(double before, double now, double scale) {
  return std::abs(now - before) <=
         std::max(kRelativeTolerance * std::abs(now), kAbsoluteTolerance * scale);
}

/// A fixed start with no symmetry that could hide an eigenvector.
std::vector<double> random_unit_vector(std::size_t n) {
  RandomStream random({.purpose = Purpose::topology});
  std::vector<double> v(n);
  std::generate(v.begin(), v.end(), [&] { return random.uniform() - 0.5; });
  scale_by(1 / std::sqrt(dot(v, v)), v);
  return v;
}

}  // namespace

ExtremeEigenvalues extreme_eigenvalues(std::size_t n, const SymmetricMap& map, Ends ends) {
  return n <= kDenseNodes ? extreme_eigenvalues_dense(n, map)
                          : extreme_eigenvalues_lanczos(n, map, ends);
}

ExtremeEigenvalues extreme_eigenvalues_dense(std::size_t n, const SymmetricMap& map) {
  const auto size = static_cast<Eigen::Index>(n);
  Eigen::MatrixXd matrix(size, size);
  std::vector<double> unit(n);
  for (std::size_t k = 0; k < n; ++k) {
    unit[k] = 1;
    map(unit, std::span(matrix.col(static_cast<Eigen::Index>(k)).data(), n));
    unit[k] = 0;
  }
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(matrix, Eigen::EigenvaluesOnly);
  return {solver.eigenvalues()(0), solver.eigenvalues()(size - 1)};
}

ExtremeEigenvalues extreme_eigenvalues_lanczos(std::size_t n, const SymmetricMap& map, Ends ends) {
  Tridiagonal t;
  std::vector<double> v = random_unit_vector(n);
  std::vector<double> previous(n);
  std::vector<double> w(n);
  ExtremeEigenvalues estimate;
  std::size_t next_check = kFirstCheck;
  for (std::size_t k = 0;; ++k) {
    if (static_cast<double>(k) * static_cast<double>(n) > kMostWork) {
      refuse("spectrum", fmt::format("{} nodes", n),
             "the graph mixes so slowly that its spectral gap cannot be found in reasonable time");
    }
    map(v, w);
    const double alpha = dot(v, w);
    const double beta_before = k > 0 ? t.beta.back() : 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      w[i] -= alpha * v[i] + beta_before * previous[i];
    }
    t.alpha.push_back(alpha);
    const double beta = std::sqrt(dot(w, w));
    if (beta <= kBreakdown * t.scale() || beta == 0) {
      break;  // the start vector's invariant subspace is complete
    }
    if (k + 1 == next_check) {
      const ExtremeEigenvalues now = t.extremes();
      const double scale = t.scale();
      const bool low = ends == Ends::largest || settled(estimate.smallest, now.smallest, scale);
      const bool high = ends == Ends::smallest || settled(estimate.largest, now.largest, scale);
      if (low && high) {
        return now;
      }
      estimate = now;
      next_check += next_check / 4;
    }
    t.beta.push_back(beta);
    scale_by(1 / beta, w);
    previous.swap(v);
    v.swap(w);
  }
  t.beta.resize(t.alpha.size() - 1);
  return t.extremes();
}

}  // namespace sotto::internal
