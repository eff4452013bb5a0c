// Muon and the steps of Newton and Schulz, against what is known of them and references in double
// precision.
#include <sotto/optim/step_rules/muon.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/compress/factors.h>
#include <sotto/optim/step_rules/newton_schulz.h>
#include <sotto/optim/wrappers/bucketed.h>

#include "optim/cluster.h"
#include "optim/noise.h"

namespace sotto::test::muon_test {

namespace {

using Matrix = std::vector<double>;

Matrix wide(std::span<const float> values) { return {values.begin(), values.end()}; }

Matrix product(std::size_t rows, std::size_t inner, std::size_t columns, const Matrix& a,
               const Matrix& b) {
  Matrix out(rows * columns);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t k = 0; k < inner; ++k) {
      for (std::size_t j = 0; j < columns; ++j) {
        out[i * columns + j] += a[i * inner + k] * b[k * columns + j];
      }
    }
  }
  return out;
}

Matrix turned(std::size_t rows, std::size_t columns, const Matrix& x) {
  Matrix out(x.size());
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      out[j * rows + i] = x[i * columns + j];
    }
  }
  return out;
}

double length(const Matrix& x) {
  double sum = 0;
  for (const double value : x) {
    sum += value * value;
  }
  return std::sqrt(sum);
}

/// x ← a x + (b A + c A²) x, A = x xᵀ, so many times.
Matrix stepped(std::size_t rows, std::size_t columns, Matrix x, int times, double a, double b,
               double c) {
  for (int step = 0; step < times; ++step) {
    Matrix gram = product(rows, columns, rows, x, turned(rows, columns, x));
    const Matrix square = product(rows, rows, rows, gram, gram);
    for (std::size_t k = 0; k < gram.size(); ++k) {
      gram[k] = b * gram[k] + c * square[k];
    }
    const Matrix moved = product(rows, rows, columns, gram, x);
    for (std::size_t k = 0; k < x.size(); ++k) {
      x[k] = a * x[k] + moved[k];
    }
  }
  return x;
}

Matrix reference(std::size_t rows, std::size_t columns, const Matrix& u) {
  if (rows > columns) {
    return turned(columns, rows, reference(columns, rows, turned(rows, columns, u)));
  }
  Matrix x = u;
  const double size = length(u) + 1e-7;
  for (double& value : x) {
    value /= size;
  }
  return stepped(rows, columns, std::move(x), 5, 3.4445, -4.7750, 2.0315);
}

/// f, five times the polynomial.
double lifted(double sigma) {
  for (int step = 0; step < 5; ++step) {
    sigma = 3.4445 * sigma - 4.7750 * std::pow(sigma, 3) + 2.0315 * std::pow(sigma, 5);
  }
  return sigma;
}

std::vector<float> orthogonalized(std::size_t rows, std::size_t columns,
                                  const std::vector<float>& u) {
  NewtonSchulz steps(host_ops());
  steps.reserve(rows, columns);
  std::vector<float> out(u.size());
  steps.orthogonalize(rows, columns, u, out);
  return out;
}

double cosine(const Matrix& a, const Matrix& b) {
  double dot = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    dot += a[k] * b[k];
  }
  return dot / (length(a) * length(b));
}

double largest_gap(const std::vector<float>& a, const Matrix& b) {
  double gap = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    gap = std::fmax(gap, std::fabs(static_cast<double>(a[k]) - b[k]));
  }
  return gap;
}

StepRuleOptions muon(std::string rule = "muon") {
  return {.rule = std::move(rule), .learning_rate = 0.02, .momentum = 0.95, .nesterov = true};
}

ParameterLayout matrices() {
  ParameterLayout layout;
  append_block(layout, "tall", {9, 4});
  append_block(layout, "conv", {4, 2, 3, 2});
  append_block(layout, "square", {5, 5});
  append_block(layout, "empty", {0, 3});
  append_block(layout, "row", {1, 6});
  return layout;
}

}  // namespace

TEST_CASE("Newton and Schulz take singular values to about 1, and leave what vanishes") {
  for (int step = 0; step <= 2000; ++step) {
    const double sigma = std::pow(10.0, -2.53 + 2.53 * step / 2000.0);  // 0.003 … 1
    const double other = std::sqrt(1 - std::min(1.0, sigma * sigma));
    const auto out =
        orthogonalized(2, 2, {static_cast<float>(sigma), 0, 0, static_cast<float>(other)});
    CAPTURE(sigma);
    CHECK(static_cast<double>(out[0]) > 0.681);
    CHECK(static_cast<double>(out[0]) < (sigma < 0.01 ? 1.203 : 1.135));
    CHECK(static_cast<double>(out[0]) == doctest::Approx(lifted(sigma)).epsilon(2e-5));
    CHECK(out[1] == 0);
    CHECK(out[2] == 0);
  }
  CHECK(orthogonalized(3, 2, {0, 0, 0, 0, 0, 0}) == std::vector<float>{0, 0, 0, 0, 0, 0});
}

TEST_CASE("Newton and Schulz leave singular vectors as they are") {
  constexpr std::size_t kRows = 6;
  constexpr std::size_t kColumns = 11;
  const std::uint64_t seed = 41;
  CAPTURE(seed);
  Matrix left = wide(gaussian(seed, kRows * kRows));
  Matrix right = wide(gaussian(seed + 1, kColumns * kRows));
  orthonormalize(kRows, left);   // columns
  orthonormalize(kRows, right);  // columns of length 11
  const auto composed = [&](auto&& value) {
    Matrix scaled = left;
    for (std::size_t i = 0; i < kRows; ++i) {
      for (std::size_t l = 0; l < kRows; ++l) {
        scaled[i * kRows + l] *= value(l);
      }
    }
    return product(kRows, kRows, kColumns, scaled, turned(kColumns, kRows, right));
  };
  const auto sigma = [](std::size_t l) { return std::pow(2.0, -static_cast<double>(l)); };
  const Matrix u = composed(sigma);
  const double size = length(u);
  const std::vector<float> narrow(u.begin(), u.end());
  const Matrix expected = composed([&](std::size_t l) { return lifted(sigma(l) / size); });
  CHECK(largest_gap(orthogonalized(kRows, kColumns, narrow), expected) < 2e-5);
  // A single product keeps its direction.
  const Matrix one = composed([](std::size_t l) { return l == 2 ? -3.0 : 0.0; });
  const Matrix lifted_one = composed([](std::size_t l) { return l == 2 ? -lifted(1) : 0.0; });
  CHECK(largest_gap(orthogonalized(kRows, kColumns, {one.begin(), one.end()}), lifted_one) < 2e-5);
}

TEST_CASE("a Gaussian matrix comes near the nearest one with orthonormal rows, at any length") {
  constexpr std::size_t kRows = 64;
  constexpr std::size_t kColumns = 256;
  for (const std::uint64_t seed : {71UL, 72UL, 73UL}) {
    CAPTURE(seed);
    const auto u = gaussian(seed, kRows * kColumns);
    const auto x = orthogonalized(kRows, kColumns, u);
    Matrix scaled = wide(u);
    for (double& value : scaled) {
      value /= 32;  // above the largest singular value, about √64 + √256
    }
    const Matrix nearest = stepped(kRows, kColumns, scaled, 30, 1.5, -0.5, 0);
    CHECK(cosine(wide(x), nearest) > 0.98);
    CHECK(cosine(wide(x), nearest) < 0.99);
    CHECK(largest_gap(x, reference(kRows, kColumns, wide(u))) < 1e-5);
    for (const float factor : {0.01F, 300.0F}) {
      std::vector<float> other = u;
      host_ops().scale(factor, other);
      CHECK(largest_gap(orthogonalized(kRows, kColumns, other), wide(x)) < 1e-5);
    }
    // A tall matrix is the wide one, turned.
    const Matrix tall = turned(kRows, kColumns, wide(u));
    const auto turned_x = orthogonalized(kColumns, kRows, {tall.begin(), tall.end()});
    CHECK(wide(turned_x) == turned(kRows, kColumns, wide(x)));
  }
}

TEST_CASE("Muon follows its rule in double precision, with every scale and form") {
  const ParameterLayout layout = matrices();
  const std::size_t d = dimension_of(layout);
  std::uint64_t seed = 900;
  for (const UpdateScale scale :
       {UpdateScale::original, UpdateScale::spectral, UpdateScale::adamw}) {
    for (const bool nesterov : {false, true}) {
      for (const double decay : {0.0, 0.1}) {
        CAPTURE(update_scale_name(scale));
        CAPTURE(nesterov);
        CAPTURE(decay);
        CAPTURE(++seed);
        StepRuleOptions options = muon();
        options.nesterov = nesterov;
        options.weight_decay = decay;
        options.update_scale = scale;
        Muon rule(options, host_ops());
        rule.resize(layout);
        std::vector<float> x = gaussian(seed, d);
        Matrix moment(d);
        std::vector<float> direction(d);
        for (Round t = 0; t < 8; ++t) {
          const auto g = gaussian(seed * 100 + t, d);
          REQUIRE(rule.direction(t, x, g, direction).ok());
          for (const ParameterBlock& block : layout) {
            if (block.size == 0) {
              continue;
            }
            Matrix u(block.size);
            for (std::size_t k = 0; k < block.size; ++k) {
              const auto gradient = static_cast<double>(g[block.offset + k]);
              double& m = moment[block.offset + k];
              m += 0.05 * (gradient - m);
              u[k] = nesterov ? 0.05 * gradient + 0.95 * m : m;
            }
            const auto rows = static_cast<double>(block.shape[0]);
            const double columns = static_cast<double>(block.size) / rows;
            const double s =
                scale == UpdateScale::original   ? std::sqrt(std::fmax(1, rows / columns))
                : scale == UpdateScale::spectral ? std::sqrt(rows / columns)
                                                 : 0.2 * std::sqrt(std::fmax(rows, columns));
            const Matrix expected = reference(block.shape[0], block.size / block.shape[0], u);
            for (std::size_t k = 0; k < block.size; ++k) {
              const std::size_t at = block.offset + k;
              const double of_x = decay * static_cast<double>(x[at]);
              CHECK(std::fabs(static_cast<double>(direction[at]) -
                              0.02 * (s * expected[k] + of_x)) < 5e-6);
            }
          }
          host_ops().axpy(-1, direction, x);
        }
      }
    }
  }
}

TEST_CASE("a Muon that was saved and loaded continues to the bit, and foreign states are refused") {
  const ParameterLayout layout = matrices();
  const std::size_t d = dimension_of(layout);
  Muon rule(muon(), host_ops());
  Muon copy(muon(), host_ops());
  rule.resize(layout);
  copy.resize(layout);
  const std::vector<float> x = gaussian(1, d);
  std::vector<float> first(d);
  std::vector<float> second(d);
  for (Round t = 0; t < 3; ++t) {
    REQUIRE(rule.direction(t, x, gaussian(t + 2, d), first).ok());
  }
  ByteBuffer saved;
  rule.save(saved);
  for (std::size_t size = 0; size < saved.bytes().size(); size += 7) {
    ByteReader in(saved.bytes().first(size));
    CHECK(copy.load(in).fault() == Fault::malformed);
  }
  ByteReader in(saved.bytes());
  REQUIRE(copy.load(in).ok());
  REQUIRE(rule.direction(3, x, gaussian(9, d), first).ok());
  REQUIRE(copy.direction(3, x, gaussian(9, d), second).ok());
  CHECK(first == second);
}

TEST_CASE("a gradient that overflows Muon's momentum or steps is a fault") {
  ParameterLayout layout;
  append_block(layout, "w", {2, 3});
  Muon rule(muon(), host_ops());
  rule.resize(layout);
  const std::vector<float> x(6);
  std::vector<float> d(6);
  std::vector<float> g = {1, 2, 3, 4, 5, std::numeric_limits<float>::infinity()};
  CHECK(rule.direction(0, x, g, d).fault() == Fault::non_finite);
  g.back() = 3e38F;  // large, but finite, as the direction is
  Muon other(muon(), host_ops());
  other.resize(layout);
  CHECK(other.direction(0, x, g, d).ok());
  CHECK(host_ops().count_non_finite(d).count == 0);
}

TEST_CASE("Muon says of which tensors it cannot make steps") {
  const auto refusal = [](const std::string& rule, const ParameterLayout& layout) -> std::string {
    try {
      make_step_rule(muon(rule))->resize(layout);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  ParameterLayout model;
  append_block(model, "first", {3, 3});
  append_block(model, "bias", {3});
  CHECK(refusal("muon", model).empty());
  CHECK(refusal("muon", one_tensor(9)).find("none of the model's tensors is left for it") !=
        std::string::npos);
  CHECK(refusal("muon; first=sgd", model).find("'bias' is none; write '; 1d=adamw'") !=
        std::string::npos);
}

TEST_CASE("Muon steps locally between exchanges, in buckets and in parts, with equal bits") {
  const auto layers = [](std::size_t width) {
    ParameterLayout layout;
    append_block(layout, "in", {width, 5});
    append_block(layout, "bias", {width});
    append_block(layout, "hidden", {width, width});
    append_block(layout, "out", {2, width});
    return layout;
  };
  const ParameterLayout layout = layers(100);
  ClusterOptions options{.algorithm = "dpsgd",
                         .nodes = 4,
                         .dimension = dimension_of(layout),
                         .step = muon(),
                         .seed = 77,
                         .layout = layout};
  const Quadratic task(4, options.dimension, 77, 0.1);
  Cluster whole(options);
  options.buckets = 3;
  Cluster cut(options);
  REQUIRE(whole.driver.run(40, task).ok());
  REQUIRE(cut.driver.run(40, task).ok());
  CHECK(cut.node<Bucketed>(0).buckets() == 3);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(same_bits(whole.x[i], cut.x[i]));
  }

  options.layout = layers(7);
  options.dimension = dimension_of(options.layout);
  options.buckets = 1;
  options.algorithm = "allreduce";
  options.communication_interval = 5;
  options.outer_step = StepRuleOptions{.learning_rate = 0.8, .momentum = 0.9, .nesterov = true};
  Cluster diloco(options);
  const Quadratic small(4, options.dimension, 78, 0.1);
  const std::vector<double> start = diloco.mean();
  REQUIRE(diloco.driver.run(300, small).ok());
  CHECK(small.excess(diloco.mean()) < small.excess(start) / 4);
  for (std::size_t i = 1; i < 4; ++i) {
    CHECK(same_bits(diloco.x[i], diloco.x[0]));
  }
}

}  // namespace sotto::test::muon_test
