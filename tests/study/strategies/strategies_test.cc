// What strategies cost, against their formulas, the simulator and all assignments of small models.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/simulation/simulated_run.h>
#include <sotto/study/strategies/internal/played_step.h>
#include <sotto/study/strategies/model_shape.h>
#include <sotto/study/strategies/strategy_prices.h>

#include "support/scratch.h"
#include "support/seed.h"

namespace sotto::test::strategies_test {

using namespace sotto::study;

namespace {

/// A scenario of timing only.
Scenario scenario_of(const std::string& nodes, const std::string& network,
                     const std::string& task) {
  return parse_scenario(
      "test", fmt::format("sotto-scenario = 1\nrun = [\"allreduce\"]\ntiming-only = true\n"
                          "nodes = {{ {} }}\nnetwork = {{ {} }}\n[task]\nrounds = 4\n{}\n",
                          nodes, network, task));
}

/// Each pair of nodes has a link of its own.
std::string link_of(double mbit_per_s, double latency_ms) {
  return fmt::format("link = {{ bandwidth = \"{} Mbit/s\", latency = \"{} ms\" }}", mbit_per_s,
                     latency_ms);
}

std::string mlp_task(std::size_t width, std::size_t layers, std::size_t batch) {
  std::string model = fmt::format("mlp:{}", width);
  for (std::size_t l = 1; l < layers; ++l) {
    model += fmt::format(",{}", width);
  }
  return fmt::format("task = \"digits,train=64,test=8\"\nmodel = \"{}\"\nbatch = {}", model, batch);
}

/// A text of 26 symbols, for transformers.
class Text {
 public:
  Text() {
    std::ofstream out(path());
    for (int i = 0; i < 4000; ++i) {
      out << static_cast<char>('a' + i % 26);
    }
  }
  std::string task(const std::string& model, std::size_t positions, std::size_t batch) const {
    return fmt::format("task = \"text:{},context={}\"\nmodel = \"{}\"\nbatch = {}", path(),
                       positions, model, batch);
  }

 private:
  std::string path() const { return (scratch_.path() / "text.txt").string(); }
  test::Scratch scratch_;
};

StrategyPrice price_of(const std::vector<StrategyPrice>& prices, const std::string& name,
                       const std::string& compressor = "none") {
  for (const StrategyPrice& one : prices) {
    if (one.strategy->name == name && one.compressor == compressor) {
      return one;
    }
  }
  FAIL(name, " was not looked at");
  return {};
}

std::vector<StrategyWay> ways_of(const std::string& name, const ModelShape& model, int nodes) {
  const auto all = strategies();
  const auto at = std::ranges::find_if(all, [&](const Strategy* one) { return one->name == name; });
  return (*at)->ways(model, nodes, "none");
}

ModelShape shape_in(const Scenario& scenario) {
  return shape_of(make_train_plan(with_run(scenario.task, run_of("allreduce"))));
}

constexpr double kHeader = 64;

}  // namespace

TEST_CASE("equal blocks of a model are one class, whatever their number") {
  const Text text;
  const auto transformer = [&](std::size_t layers, std::size_t width) {
    return shape_in(
        scenario_of("count = 2, gradient = \"1 ms\"", link_of(10, 1),
                    text.task(fmt::format("transformer:{},{},2", layers, width), 8, 4)));
  };
  for (const std::size_t layers : {1U, 3U, 5U}) {
    const std::size_t width = 6 + 2 * layers;
    const ModelShape shape = transformer(layers, width);
    REQUIRE(shape.classes.size() == 5);
    const BlockClass& blocks = shape.classes[2];
    CHECK(blocks.name == "h.#");
    CHECK(blocks.blocks == layers);
    CHECK(blocks.parameters == 12 * width * width + 10 * width);
    CHECK(blocks.attention);
    CHECK(blocks.products ==
          std::vector<ProductSize>{
              {width, 3 * width}, {width, width}, {width, 4 * width}, {4 * width, width}});
    CHECK(shape.rows() == 32);
    CHECK(shape.classes.front().products.empty());
    // Tied layers have normalizations of their own.
    CHECK(shape.tied.empty() == (layers == 1));
    if (layers > 1) {
      CHECK(shape.parameters - shape.tied_parameters ==
            (layers - 1) * (12 * width * width + 6 * width));
    }
  }
  const ModelShape dense =
      shape_in(scenario_of("count = 2, gradient = \"1 ms\"", link_of(10, 1), mlp_task(24, 4, 4)));
  REQUIRE(dense.classes.size() == 3);
  CHECK(dense.classes[1].blocks == 3);
  CHECK(dense.order == std::vector<std::size_t>{0, 1, 1, 1, 2});
  CHECK(dense.state == 0);
}

TEST_CASE("bytes of strategies are those of their formulas") {
  const std::uint64_t seed = test::drawn_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const auto draw = [&](std::size_t low, std::size_t high) {
    return std::uniform_int_distribution<std::size_t>(low, high)(random);
  };
  const Text text;
  const std::size_t width = 8 * draw(1, 4);
  const std::size_t layers = draw(2, 4);
  const std::size_t batch = draw(2, 5);
  const Scenario scenario =
      scenario_of("count = 4, gradient = \"2 ms\"", link_of(50, 0.5),
                  text.task(fmt::format("transformer:{},{},2", layers, width), 16, batch));
  const ModelShape shape = shape_in(scenario);
  const auto prices = price_strategies(scenario);
  const double d = static_cast<double>(shape.parameters);
  const double blocks = static_cast<double>(layers);
  const double h = static_cast<double>(width);
  const double rows = static_cast<double>(shape.rows());

  CHECK(price_of(prices, "data").bytes == doctest::Approx(6 * d + 6 * kHeader).epsilon(0.001));
  CHECK(price_of(prices, "tied").bytes ==
        doctest::Approx(6.0 * static_cast<double>(shape.tied_parameters) + 6 * kHeader)
            .epsilon(0.001));
  CHECK(price_of(prices, "sharded").bytes == doctest::Approx(6 * d + 6 * kHeader).epsilon(0.001));
  // Each of the sequences of all nodes goes round, and all weights are averaged.
  const double sequences = 4.0 * static_cast<double>(batch);
  CHECK(price_of(prices, "ring").priced);
  const double hops = (2 * 2 * 3.0 / 4 + 2) * 16 * h * 4 + 10 * kHeader;
  CHECK(price_of(prices, "ring").bytes ==
        doctest::Approx(6 * d + 6 * kHeader + blocks * sequences * hops).epsilon(0.001));
  // Two by two: 3 (q − 1)/q² (M K + K N) of each product, in 6 frames.
  double cut = 0;
  double weights = 0;
  for (const ProductSize& one : shape.classes[2].products) {
    const double in = static_cast<double>(one.inputs);
    const double out = static_cast<double>(one.outputs);
    cut += 4 * 3.0 / 4 * (4 * rows * in + in * out) + 6 * kHeader;
    weights += in * out;
  }
  CHECK(price_of(prices, "grid").bytes ==
        doctest::Approx(6 * (d - blocks * weights) + 6 * kHeader + blocks * cut).epsilon(0.01));
}

TEST_CASE("a pipeline sends its boundaries, and a layer of experts its tokens") {
  const std::size_t width = 40;
  const Scenario scenario =
      scenario_of("count = 3, gradient = \"3 ms\"", link_of(50, 0.5), mlp_task(width, 5, 8));
  const StrategyPrice pipeline = price_of(price_strategies(scenario), "pipeline");
  CHECK(pipeline.way == "data=1,stage=3, 12 micro-batches");
  // Two boundaries carry 24 examples there and back, by 3 nodes, in 12 frames each way.
  const double boundary = 2 * (24 * width * 4 + 12 * kHeader);
  CHECK(pipeline.bytes * 3 == doctest::Approx(2 * boundary).epsilon(0.1));
  CHECK(pipeline.bytes * 3 >= 2.0 * 2 * 24 * width * 4);

  const Text text;
  const Scenario mixed = scenario_of("count = 4, gradient = \"3 ms\"", link_of(50, 0.5),
                                     text.task("transformer:2,16,2,experts=8", 16, 8));
  const ModelShape shape = shape_in(mixed);
  CHECK(shape.classes[2].experts == 8);
  const StrategyPrice experts = price_of(price_strategies(mixed), "experts");
  const double rest =
      6.0 * static_cast<double>(shape.parameters - 2 * shape.classes[2].expert_parameters);
  // 4 k T h (p − 1)/p elements a layer in the mean, of which a capacity of 1.25 leaves nearly all.
  CHECK(experts.bytes - rest == doctest::Approx(2 * 4 * 128 * 16 * 4 * 0.75).epsilon(0.1));
}

TEST_CASE("blocks that are played once and twice give the time and bytes of all") {
  const std::uint64_t seed = test::drawn_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const double latency = std::uniform_real_distribution<double>(0.1, 5)(random);
  const Scenario scenario =
      scenario_of("count = 4, gradient = \"2 ms\"", link_of(30, latency), mlp_task(48, 5, 8));
  for (const StrategyWay& way : ways_of("grid", shape_in(scenario), 4)) {
    const PlayedStep one = play(scenario, *way.program, 1);
    const PlayedStep further = play(scenario, *way.program, 2).followed_by(one, -1);
    for (const std::size_t blocks : {3U, 4U}) {
      const PlayedStep all = play(scenario, *way.program, blocks);
      const PlayedStep summed = one.followed_by(further, static_cast<double>(blocks - 1));
      CHECK(summed.seconds == doctest::Approx(all.seconds).epsilon(0.05));
      CHECK(summed.sent[1] == doctest::Approx(all.sent[1]).epsilon(1e-9));
      CHECK(summed.phases == all.phases);
    }
  }
}

TEST_CASE("the price of data parallelism is what a simulated run takes") {
  for (const double mbit : {2.0, 200.0}) {
    const Scenario scenario = scenario_of("count = 5, gradient = \"uniform:4 ms,9 ms\"",
                                          link_of(mbit, 3), mlp_task(32, 3, 4));
    const auto run = simulate_run(scenario, run_of("allreduce"));
    const StrategyPrice price = price_of(price_strategies(scenario), "data");
    CHECK(price.seconds ==
          doctest::Approx(run.result.virtual_s / static_cast<double>(run.result.rounds))
              .epsilon(0.05));
    CHECK(price.bytes ==
          doctest::Approx(run.result.bytes_per_node() / static_cast<double>(run.result.rounds)));
  }
}

TEST_CASE("of all assignments of four equal blocks the quickest is one that a plan looks at") {
  // Wide blocks and few rows are for a cube, and narrow ones with many never.
  for (const auto& [width, batch] : {std::pair(16U, 64U), std::pair(320U, 1U)}) {
    const Scenario scenario = scenario_of("count = 8, gradient = \"0.1 ms\"", link_of(100, 0.02),
                                          mlp_task(width, 5, batch));
    const ModelShape shape = shape_in(scenario);
    const StrategyWay way = ways_of("grid", shape, 8).back();
    REQUIRE(way.text == "depth=2,row=2,column=2 (cube)");
    REQUIRE(way.program->blocks == 4);
    const std::size_t block = std::size_t{width} * width;
    std::vector<double> seconds;  // by the number of blocks that are cut; equal ones are alike
    for (std::size_t count = 0; count <= 4; ++count) {
      const MixedPart rest = {.elements = shape.parameters - count * block};
      const PlayedStep step = count == 0
                                  ? play(scenario, rest, Computing::gradients)
                                  : play(scenario, *way.program, count)
                                        .followed_by(play(scenario, rest, Computing::none), 1);
      seconds.push_back(step.seconds);
    }
    CAPTURE(fmt::format("{}", fmt::join(seconds, ", ")));
    const auto best = std::ranges::min_element(seconds) - seconds.begin();
    CHECK(best == (width == 16 ? 0 : 4));
    const auto prices = price_strategies(scenario);
    const bool grid = price_of(prices, "grid").seconds < price_of(prices, "data").seconds;
    CHECK(grid == (best == 4));
  }
}

TEST_CASE("strategies are refused in bytes, by links and by memory") {
  const std::string task = mlp_task(64, 4, 64);
  const auto thin =
      price_strategies(scenario_of("count = 4, gradient = \"1 ms\"", link_of(5, 0.1), task));
  const StrategyPrice grid = price_of(thin, "grid");
  CHECK(grid.refused.find("would carry") != std::string::npos);
  CHECK(grid.refused.find("its budget is") != std::string::npos);
  CHECK(price_of(thin, "data").refused.empty());
  CHECK(price_of(thin, "ring").refused == "its model has no attention; a transformer has");
  CHECK_FALSE(price_of(thin, "ring").priced);
  CHECK(price_of(thin, "sharded").command.starts_with("sotto train --nodes=4"));

  const auto far =
      price_strategies(scenario_of("count = 4, gradient = \"1 ms\"", link_of(1000, 100), task));
  CHECK(price_of(far, "grid").refused.find("exchanges wait for each other") != std::string::npos);

  const double held = price_of(thin, "data").memory_bytes;
  const auto small = price_strategies(
      scenario_of(fmt::format("count = 4, gradient = \"1 ms\", memory = \"{} B\"", held - 1),
                  link_of(5, 0.1), task));
  CHECK(price_of(small, "data").refused.starts_with("a node would hold"));
  // What is slower than a step that does not fit is no less worth a try.
  CHECK(price_of(small, "pipeline").refused.empty());
  CHECK(small.front().refused.empty());
}

TEST_CASE("strategies are for 2 to 64 nodes that tell the truth") {
  CHECK_THROWS_AS(price_strategies(scenario_of("count = 65, gradient = \"1 ms\"", link_of(5, 1),
                                               mlp_task(8, 1, 4))),
                  Error);
  CHECK_THROWS_AS(price_strategies(scenario_of("count = 1, gradient = \"1 ms\"", link_of(5, 1),
                                               mlp_task(8, 1, 4))),
                  Error);
}

TEST_CASE("strategies are refused where chance would be multiplied, and where layers are tied") {
  const std::string nodes = "count = 4, gradient = \"1 ms\"";
  const auto refused = [&](const std::string& network, const std::string& task) {
    return test::refusal([&] { (void)price_strategies(scenario_of(nodes, network, task)); });
  };
  CHECK(refused("tcp = {}, link = { latency = \"1 ms\", loss = 0.01 }", mlp_task(8, 1, 4))
            .find("leave loss and jitter out") != std::string::npos);
  CHECK(refused("link = { latency = \"5 ms\", jitter = \"1 ms\" }", mlp_task(8, 1, 4))
            .find("leave loss and jitter out") != std::string::npos);
  Scenario tied = scenario_of(nodes, link_of(5, 1), mlp_task(8, 1, 4));
  tied.task.model = "transformer:4,64,4,share=4";
  CHECK(test::refusal([&] { (void)price_strategies(tied); }).find("tied already") !=
        std::string::npos);
}

}  // namespace sotto::test::strategies_test
