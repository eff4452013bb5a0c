// Step rules that the caller brings along.
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

#include "trainers/nodes.h"

namespace sotto::test::own_step_rule_test {

namespace {

/// Sets x to the mean of x and the gradient, and counts whom it served.
class Halving : public StepRule {
 public:
  std::string_view name() const override { return "halving"; }
  void resize(const ParameterLayout& /*layout*/) override {}
  Status direction(Round /*round*/, std::span<const float> x, std::span<const float> gradient,
                   std::span<float> d) override {
    for (std::size_t k = 0; k < d.size(); ++k) {
      d[k] = x[k] - (x[k] + gradient[k]) / 2;
    }
    return {};
  }
  void set_learning_rate(double /*learning_rate*/) override {}
  void save(ByteBuffer& out) const override { out.write_string(name()); }
  Status load(ByteReader& in) override {
    return in.read_string(100) == name() ? Status()
                                         : Status(Fault::malformed, "another step rule's state");
  }
};

/// A rule that halves as Halving does, and makes the next model at once.
class ExactHalving final : public Halving {
 public:
  Status next_model(Round /*round*/, std::span<const float> x, std::span<const float> gradient,
                    std::span<float> next, const Ops& /*ops*/) override {
    for (std::size_t k = 0; k < next.size(); ++k) {
      next[k] = (x[k] + gradient[k]) / 2;
    }
    return {};
  }
};

template <typename Rule>
OptimizerOptions with_rule(int nodes, std::string algorithm) {
  auto options = options_for(nodes, make_memory_store());
  options.algorithm = std::move(algorithm);
  options.own_step_rule = [] { return std::make_unique<Rule>(); };
  return options;
}

/// One step from `from` with the gradient `to`, alone.
template <typename Rule>
float step_alone(const std::string& algorithm, float from, float to) {
  std::vector<float> x = {from};
  Optimizer optimizer(with_rule<Rule>(1, algorithm), x);
  const std::vector<float> gradient = {to};
  REQUIRE(optimizer.step(gradient).ok());
  REQUIRE(optimizer.finish().ok());
  return x[0];
}

}  // namespace

TEST_CASE("a step rule of the caller's own makes the steps, and its name is agreed on") {
  std::vector<float> x = {8, -4};
  Optimizer optimizer(with_rule<Halving>(1, "allreduce"), x);
  CHECK(optimizer.options().step_rule.rule == "halving");
  CHECK(optimizer.agreement().find("halving") != std::string::npos);
  const std::vector<float> gradient = {0, 4};
  REQUIRE(optimizer.step(gradient).ok());
  CHECK(x == std::vector<float>{4, 0});
  REQUIRE(optimizer.finish().ok());
}

TEST_CASE("nodes with step rules of their own average, and another's saved state is refused") {
  std::vector<std::vector<float>> models(4, {0});
  const auto options = with_rule<Halving>(4, "allreduce");
  const auto statuses = play(4, [&](Rank rank) {
    return train(
        options, rank, 2,
        [](Rank node, Round, std::span<const float>, std::span<float> g) {
          g[0] = static_cast<float>(node);
        },
        models[static_cast<std::size_t>(rank)]);
  });
  for (std::size_t rank = 0; rank < 4; ++rank) {
    CHECK(statuses[rank].ok());
    CHECK(models[rank][0] == doctest::Approx(0.75 * 1.5));
  }
  std::vector<float> x = {1};
  ByteBuffer saved;
  auto plain = options_for(1, make_memory_store());
  plain.algorithm = "allreduce";
  Optimizer(plain, x).save(saved);
  Optimizer halving(with_rule<Halving>(1, "allreduce"), x);
  ByteReader in(saved.bytes());
  CHECK(halving.load(in).fault() == Fault::malformed);
}

TEST_CASE("a rule that makes the next model is believed to the bit where the step is x - d") {
  // Here x − (x − x') is not x'.
  const float from = -1.0F;
  const float to = 1.1F;
  const float exact = (from + to) / 2;
  CHECK(from - (from - exact) != exact);
  for (const char* algorithm : {"allreduce", "dpsgd"}) {
    CHECK(step_alone<ExactHalving>(algorithm, from, to) == exact);
    CHECK(step_alone<Halving>(algorithm, from, to) == from - (from - exact));
  }
}

TEST_CASE("algorithms that are built on a rule of sotto's do not take the caller's") {
  std::vector<float> x = {1, 2};
  CHECK_THROWS_WITH_AS(Optimizer(with_rule<Halving>(2, "onebit-adam"), x),
                       doctest::Contains("is built on adam's moments"), Error);
}

}  // namespace sotto::test::own_step_rule_test
