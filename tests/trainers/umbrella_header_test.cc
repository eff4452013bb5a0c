// <sotto/sotto.h> alone is enough for a program.
#include <sotto/sotto.h>

#include <doctest/doctest.h>

namespace sotto::test::umbrella_header_test {

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
  sotto::SimulatorOptions world;
  world.rounds = 3;
  const auto ring = sotto::make_topology("ring", 4);
  sotto::StandInShape shape;
  shape.frame_bytes = 100;
  shape.elements = 10;
  const auto report = sotto::Simulator(sotto::make_star(4, 1e6, 1'000'000), world,
                                       sotto::make_stand_ins(shape, ring))
                          .run();
  CHECK(report.messages == 3 * 4 * 2);
}

}  // namespace sotto::test::umbrella_header_test
