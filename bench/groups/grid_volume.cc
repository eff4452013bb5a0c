// What a product of matrices and its gradients send when they are cut over 64 nodes, in one, two,
// two and a half and three dimensions, beside their formulas and beside averaging the weights'
// gradient; and how long that takes on a fast and on a slow network, in the simulator.
//
// Y = X W, dX and dW in a step, in float32. Computation takes no time; it is as much in all ways.
// "In one dimension" has W cut by columns and X too: X is gathered, and dX summed and scattered.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <sotto/groups/programs/grid_product.h>

#include "bench/groups/star_run.h"
#include "bench/support/command_line.h"

namespace {

constexpr int kNodes = 64;

/// M, K and N.
struct Sizes {
  std::size_t rows;
  std::size_t inner;
  std::size_t columns;
};

/// A program of which the bench says how much it holds.
class Measured : public sotto::Program {
 public:
  /// Floats of a node's blocks of X, W, Y and their gradients, and of what the exchange needs.
  virtual std::size_t held() const = 0;
};

/// A product on a grid; blocks are 1 everywhere.
class Grid final : public Measured {
 public:
  Grid(const sotto::ProgramNode& node, const sotto::GridProductOptions& options)
      : product_(node, options),
        x_(product_.input().size(), 1.0F),
        w_(product_.weight().size(), 1.0F),
        y_(product_.output().size()),
        dx_(x_.size()),
        dw_(w_.size()) {
    product_.list_forward(x_, w_, y_, stages_);
    product_.list_backward(x_, w_, y_, dx_, dw_, stages_);
  }
  std::span<const sotto::ProgramStage> stages() const override { return stages_; }
  std::size_t held() const override {
    return 2 * (x_.size() + w_.size() + y_.size()) + product_.room_bytes() / sizeof(float);
  }

 private:
  sotto::GridProduct product_;
  std::vector<float> x_;
  std::vector<float> w_;
  std::vector<float> y_;
  std::vector<float> dx_;
  std::vector<float> dw_;
  std::vector<sotto::ProgramStage> stages_;
};

/// W cut by columns: X is whole at every node while it is multiplied, and so is each node's dX.
class Columns final : public Measured {
 public:
  Columns(const sotto::ProgramNode& node, const Sizes& sizes)
      : sizes_(sizes),
        x_(sizes.rows * sizes.inner, 1.0F),
        gather_(sotto::make_all_gather(
            node.everyone(),
            {.elements = x_.size(), .encoding = {.data = sotto::Carried::activation}})),
        scatter_(sotto::make_reduce_scatter(
            node.everyone(),
            {.elements = x_.size(), .encoding = {.data = sotto::Carried::activation_gradient}})) {
    const auto carry = [this](sotto::VectorCollective& collective) {
      return [this, &collective](const auto&) {
        collective.begin(x_);
        return sotto::Status();
      };
    };
    stages_ = {{"X", carry(*gather_), gather_.get(), 0},
               {"dX", carry(*scatter_), scatter_.get(), 0}};
  }
  std::span<const sotto::ProgramStage> stages() const override { return stages_; }
  std::size_t held() const override {
    // X and dX whole, both cut ones, and a 64th of W and Y and of their gradients.
    return 2 * x_.size() + 2 * (x_.size() + (sizes_.inner + sizes_.rows) * sizes_.columns) / kNodes;
  }

 private:
  Sizes sizes_;
  std::vector<float> x_;
  std::unique_ptr<sotto::VectorCollective> gather_;
  std::unique_ptr<sotto::VectorCollective> scatter_;
  std::vector<sotto::ProgramStage> stages_;
};

/// A way to cut the product.
struct Way {
  const char* name;
  const char* grid;
  double formula;  ///< elements that a node receives
  std::function<std::unique_ptr<Measured>(const sotto::ProgramNode&)> build;
};

std::vector<Way> ways_of(const Sizes& sizes) {
  const auto m = static_cast<double>(sizes.rows);
  const auto k = static_cast<double>(sizes.inner);
  const auto n = static_cast<double>(sizes.columns);
  const auto grid = [sizes](sotto::GridForm form) {
    return [sizes, form](const sotto::ProgramNode& node) {
      return std::make_unique<Grid>(node, sotto::GridProductOptions{.rows = sizes.rows,
                                                                    .inner = sizes.inner,
                                                                    .columns = sizes.columns,
                                                                    .form = form,
                                                                    .depth = "depth"});
    };
  };
  const auto planes = [&](double q, double d) {
    return 3 * (q - 1) / (q * q) * (m * k / d + k * n) + 2 * (d - 1) / d * k * n / (q * q);
  };
  return {
      {"averaging dW", "depth=64,row=1,column=1", planes(1, 64), grid(sotto::GridForm::planes)},
      {"1D", "all=64", 2 * 63.0 / 64 * m * k,
       [sizes](const sotto::ProgramNode& node) { return std::make_unique<Columns>(node, sizes); }},
      {"2D, 8 x 8", "depth=1,row=8,column=8", planes(8, 1), grid(sotto::GridForm::planes)},
      {"2.5D, 4 x 4 x 4", "depth=4,row=4,column=4", planes(4, 4), grid(sotto::GridForm::planes)},
      {"3D, 4 x 4 x 4", "depth=4,row=4,column=4", 2 * 3.0 / 64 * (m * k + k * n + m * n),
       grid(sotto::GridForm::cube)},
  };
}

/// What came of a way on a wire.
struct Outcome {
  sotto::bench::StarRound round;
  double held = 0;  ///< most floats at a node
};

Outcome run_way(const Way& way, const sotto::bench::Wire& wire) {
  Outcome outcome;
  outcome.round = sotto::bench::run_on_star(
      kNodes, way.grid, wire, [&](const sotto::ProgramNode& at) -> std::unique_ptr<sotto::Program> {
        auto made = way.build(at);
        outcome.held = std::max(outcome.held, static_cast<double>(made->held()));
        return made;
      });
  return outcome;
}

void measure(const Sizes& sizes) {
  for (const Way& way : ways_of(sizes)) {
    const Outcome fast = run_way(way, sotto::bench::kFastWire);
    const Outcome slow = run_way(way, sotto::bench::kSlowWire);
    std::printf("| %zu, %zu, %zu | %-15s | %9.0f | %9.0f | %3d | %6.2f | %7.4f | %6.2f |\n",
                sizes.rows, sizes.inner, sizes.columns, way.name, way.formula, fast.round.elements,
                fast.round.phases, fast.held * 4 / 1e6, fast.round.seconds, slow.round.seconds);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What a product cut over 64 nodes sends, beside its formula, in the simulator",
               "grid_volume");
  return sotto::bench::run_main(app, argc, argv, [] {
    std::printf(
        "| M, K, N | way | by formula | received | phases | MB held | s fast | s slow |\n"
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    measure({.rows = 4096, .inner = 512, .columns = 512});
    measure({.rows = 1024, .inner = 1024, .columns = 1024});
    return sotto::console::kDone;
  });
}
