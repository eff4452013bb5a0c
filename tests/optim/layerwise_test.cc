// Step rules that go by tensors, and clipping, against references in double precision that follow
// the papers' boxes.
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/names.h>
#include <sotto/kernels/norm.h>
#include <sotto/optim/step_rule.h>
#include <sotto/optim/step_rule_info.h>

namespace sotto::test::layerwise_test {

namespace {

constexpr Round kRounds = 60;
using Vector = std::vector<double>;

/// Two matrices, a bias, a convolution, a scalar; the second matrix starts at zero.
ParameterLayout tensors() {
  ParameterLayout layout;
  append_block(layout, "first.weight", {5, 7});
  append_block(layout, "first.bias", {5});
  append_block(layout, "zeros.weight", {3, 4});
  append_block(layout, "conv.weight", {2, 3, 2, 2});
  append_block(layout, "temperature", {});
  return layout;
}

std::vector<float> start(const ParameterLayout& layout) {
  std::vector<float> x(dimension_of(layout));
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = 0.25F * static_cast<float>(i % 11) - 1;
  }
  for (float& value : layout[2].of(std::span(x))) {
    value = 0;
  }
  return x;
}

/// A gradient that depends on x, so that an error in one step shows in all later ones.
double gradient_at(double x, std::size_t i, Round t) {
  return 0.3 * x + std::sin(0.7 * static_cast<double>(i) + 0.05 * static_cast<double>(t));
}

double norm_of(const Vector& v, const ParameterBlock& block) {
  double sum = 0;
  for (std::size_t i = block.offset; i < block.offset + block.size; ++i) {
    sum += v[i] * v[i];
  }
  return std::sqrt(sum);
}

/// The state of one model in double precision, and the tensors that have a ratio of their own.
struct Reference {
  ParameterLayout layout;
  Vector x, g, first, second;

  bool scaled(const ParameterBlock& block) const { return block.shape.size() > 1; }
};
using ReferenceStep = std::function<void(Reference&, int t)>;

double largest_difference(const StepRuleOptions& options, const ReferenceStep& step) {
  const ParameterLayout layout = tensors();
  const auto rule = make_step_rule(options);
  rule->resize(layout);
  std::vector<float> x = start(layout);
  const std::size_t d = x.size();
  std::vector<float> g(d);
  std::vector<float> direction(d, std::numeric_limits<float>::quiet_NaN());
  Reference reference{layout, Vector(x.begin(), x.end()), Vector(d), Vector(d), Vector(d)};
  double largest = 0;
  for (Round t = 0; t < kRounds; ++t) {
    for (std::size_t i = 0; i < d; ++i) {
      g[i] = static_cast<float>(gradient_at(static_cast<double>(x[i]), i, t));
      reference.g[i] = gradient_at(reference.x[i], i, t);
    }
    REQUIRE(rule->direction(t, x, g, direction).ok());
    step(reference, static_cast<int>(t) + 1);
    for (std::size_t i = 0; i < d; ++i) {
      x[i] -= direction[i];
      largest = std::fmax(largest, std::fabs(static_cast<double>(x[i]) - reference.x[i]));
    }
  }
  return largest;
}

ReferenceStep lars_reference(double gamma, double momentum, double decay, double eta) {
  return [=](Reference& m, int) {
    for (const ParameterBlock& block : m.layout) {
      const double x_norm = norm_of(m.x, block);
      const double g_norm = norm_of(m.g, block);
      const double lambda = m.scaled(block) ? decay : 0;
      double ratio = 1;
      if (m.scaled(block) && x_norm > 0 && g_norm > 0) {
        ratio = eta * x_norm / (g_norm + lambda * x_norm);
      }
      for (std::size_t i = block.offset; i < block.offset + block.size; ++i) {
        m.first[i] = momentum * m.first[i] + gamma * ratio * (m.g[i] + lambda * m.x[i]);
        m.x[i] -= m.first[i];
      }
    }
  };
}

ReferenceStep lamb_reference(double gamma, double beta1, double beta2, double epsilon,
                             double decay) {
  return [=](Reference& m, int t) {
    Vector u(m.x.size());
    for (const ParameterBlock& block : m.layout) {
      const double lambda = m.scaled(block) ? decay : 0;
      for (std::size_t i = block.offset; i < block.offset + block.size; ++i) {
        m.first[i] = beta1 * m.first[i] + (1 - beta1) * m.g[i];
        m.second[i] = beta2 * m.second[i] + (1 - beta2) * m.g[i] * m.g[i];
        const double mean = m.first[i] / (1 - std::pow(beta1, t));
        const double variance = m.second[i] / (1 - std::pow(beta2, t));
        u[i] = mean / (std::sqrt(variance) + epsilon) + lambda * m.x[i];
      }
      const double x_norm = norm_of(m.x, block);
      const double u_norm = norm_of(u, block);
      const double ratio = m.scaled(block) && x_norm > 0 && u_norm > 0 ? x_norm / u_norm : 1;
      for (std::size_t i = block.offset; i < block.offset + block.size; ++i) {
        m.x[i] -= gamma * ratio * u[i];
      }
    }
  };
}

}  // namespace

TEST_CASE("LARS follows its paper's algorithm, tensor by tensor") {
  for (const double momentum : {0.0, 0.9}) {
    for (const double decay : {0.0, 0.05}) {
      CAPTURE(momentum);
      CAPTURE(decay);
      CHECK(largest_difference({.rule = "lars",
                                .learning_rate = 0.1,
                                .momentum = momentum,
                                .weight_decay = decay,
                                .trust_coefficient = 0.02},
                               lars_reference(0.1, momentum, decay, 0.02)) < 2e-5);
    }
  }
}

TEST_CASE("LAMB follows its paper's algorithm, tensor by tensor") {
  for (const double decay : {0.0, 0.05}) {
    CAPTURE(decay);
    CHECK(largest_difference({.rule = "lamb", .learning_rate = 0.01, .weight_decay = decay},
                             lamb_reference(0.01, 0.9, 0.999, 1e-8, decay)) < 1e-4);
  }
}

TEST_CASE("a step of LARS is independent of the gradient's scale, one of LAMB of the model's") {
  const ParameterLayout layout = tensors();
  const std::vector<float> x = start(layout);
  std::vector<float> g(x.size());
  for (std::size_t i = 0; i < g.size(); ++i) {
    g[i] = static_cast<float>(gradient_at(0, i, 0));
  }
  const auto step = [&](const char* name, std::vector<float> at, std::vector<float> gradient) {
    const auto rule = make_step_rule({.rule = name, .learning_rate = 1});
    rule->resize(layout);
    std::vector<float> d(at.size());
    REQUIRE(rule->direction(0, at, gradient, d).ok());
    return d;
  };
  std::vector<float> large_g = g;
  std::vector<float> large_x = x;
  host_ops().scale(1024, large_g);
  host_ops().scale(1024, large_x);
  const auto lars = step("lars", x, g);
  const auto lars_large = step("lars", x, large_g);
  const auto lamb = step("lamb", x, g);
  const auto lamb_large = step("lamb", large_x, g);
  for (std::size_t i = 0; i < layout[0].size; ++i) {
    CHECK(lars_large[i] == lars[i]);
    CHECK(lamb_large[i] == 1024 * lamb[i]);
  }
  // Without a second tensor the whole vector has one ratio, whatever its shape.
  const auto rule = make_step_rule({.rule = "lars", .learning_rate = 1});
  rule->resize(one_tensor(2));
  std::vector<float> d(2);
  REQUIRE(rule->direction(0, std::vector<float>{3, 4}, std::vector<float>{0, 2}, d).ok());
  CHECK(d[1] == doctest::Approx(0.005));
}

TEST_CASE("tensors, gradients and products without a norm give finite steps") {
  const ParameterLayout layout = tensors();
  const std::vector<float> zeros(dimension_of(layout));
  const std::vector<float> x = start(layout);
  // So small that its square and the ratio that undoes it both leave float32.
  const std::vector<float> tiny(x.size(), 1e-44F);
  for (const char* name : {"lars", "lamb"}) {
    CAPTURE(name);
    for (const auto* gradient : {&zeros, &tiny}) {
      const auto rule = make_step_rule({.rule = name, .weight_decay = 0});
      rule->resize(layout);
      std::vector<float> d(x.size());
      for (const auto* at : {&x, &zeros}) {
        REQUIRE(rule->direction(0, *at, *gradient, d).ok());
        CHECK(host_ops().count_non_finite(d).count == 0);
      }
    }
  }
}

TEST_CASE("clipping scales the whole gradient as torch.nn.utils.clip_grad_norm_ does") {
  const std::vector<float> x = {1, 1, 1, 1};
  const std::vector<float> g = {1, -2, 2, 4};  // norm 5
  const auto step = [&](double clip) {
    const auto rule = make_step_rule({.learning_rate = 1, .clip_norm = clip});
    rule->resize(one_tensor(4));
    std::vector<float> d = g;
    REQUIRE(rule->direction(0, x, d, d).ok());  // gradient and direction may be one span
    return d;
  };
  const auto clipped = step(0.5);
  for (std::size_t i = 0; i < g.size(); ++i) {
    CHECK(clipped[i] == static_cast<float>(0.5 / (5 + 1e-6)) * g[i]);
  }
  CHECK(step(5.1) == g);
  CHECK(step(std::numeric_limits<double>::infinity()) == g);
  const std::vector<float> huge = {3e38F, 0, 0, 3e38F};
  const auto rule = make_step_rule({.learning_rate = 1, .clip_norm = 1});
  rule->resize(one_tensor(4));
  std::vector<float> d(4);
  REQUIRE(rule->direction(0, x, huge, d).ok());
  CHECK(norm(d, host_ops()) == doctest::Approx(1));
}

TEST_CASE("clipping comes before weight decay and momentum in every rule") {
  const std::vector<float> x = {4, -3, 2};
  const std::vector<float> g = {8, -12, 24};  // norm 28
  std::vector<float> scaled = g;
  host_ops().scale(static_cast<float>(7.0 / (28 + 1e-6)), scaled);
  ParameterLayout matrix;
  append_block(matrix, "x", {3, 1});
  for (const std::string& name : names_of(step_rules())) {
    CAPTURE(name);
    StepRuleOptions options{.rule = name, .weight_decay = 0.1, .epsilon = 1};
    const auto plain = make_step_rule(options);
    options.clip_norm = 7;
    const auto clipping = make_step_rule(options);
    plain->resize(matrix);
    clipping->resize(matrix);
    std::vector<float> expected(3);
    std::vector<float> d(3);
    for (Round t = 0; t < 3; ++t) {
      REQUIRE(plain->direction(t, x, scaled, expected).ok());
      REQUIRE(clipping->direction(t, x, g, d).ok());
      CHECK(d == expected);
    }
  }
}

}  // namespace sotto::test::layerwise_test
