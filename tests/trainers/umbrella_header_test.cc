// <sotto/sotto.h> alone is enough for a program.
#include <sotto/sotto.h>

#include <doctest/doctest.h>

TEST_CASE("a program that includes sotto.h alone has the optimizer, graphs and the simulator") {
  sotto::OptimizerOptions options;
  options.nodes = 1;
  options.step_rule.learning_rate = 0.5;
  std::vector<float> x(8);
  sotto::Optimizer optimizer(options, x);
  CHECK(optimizer.step(std::vector<float>(8, -1.0F)).ok());
  CHECK(optimizer.finish().ok());
  CHECK(x == std::vector<float>(8, 0.5F));
  CHECK(sotto::make_topology("ring", 4)->nodes() == 4);
  CHECK(sotto::SimulatorOptions().rounds >= 0);
}
