#include <sotto/groups/programs/grid_product.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/kernels/matrix_product.h>

#include "alike.h"
#include "runs.h"

namespace sotto::test::grid_product_test {

namespace {

constexpr std::uint64_t kSeed = 20'261'128;

/// A product on a grid.
struct GridCase {
  int nodes = 1;
  std::string grid;
  GridProductOptions options;
  bool integers = false;  ///< matrices of small whole numbers
};

GridCase planes(int q, std::size_t m, std::size_t k, std::size_t n, int d = 1) {
  const std::string side = std::to_string(q);
  return {.nodes = d * q * q,
          .grid = "depth=" + std::to_string(d) + ",row=" + side + ",column=" + side,
          .options = {.rows = m, .inner = k, .columns = n, .depth = "depth"}};
}

GridCase cube(int q, std::size_t m, std::size_t k, std::size_t n) {
  GridCase made = planes(q, m, k, n, q);
  made.options.form = GridForm::cube;
  return made;
}

/// A whole matrix, the same wherever it is asked for.
std::vector<float> whole_matrix(const GridCase& at, std::uint32_t number, std::size_t elements) {
  RandomStream stream({.seed = kSeed, .purpose = Purpose::test, .bucket = number});
  std::vector<float> all(elements);
  for (float& value : all) {
    value = at.integers ? static_cast<float>(stream.below(17)) - 8.0F
                        : static_cast<float>(stream.normal());
  }
  return all;
}

struct Matrices {
  explicit Matrices(const GridCase& at)
      : x(whole_matrix(at, 1, at.options.rows * at.options.inner)),
        w(whole_matrix(at, 2, at.options.inner * at.options.columns)),
        dy(whole_matrix(at, 3, at.options.rows * at.options.columns)) {}

  std::vector<float> x;
  std::vector<float> w;
  std::vector<float> dy;
};

std::vector<float> cut(const std::vector<float>& whole, std::size_t columns,
                       const MatrixBlock& block) {
  std::vector<float> part;
  for (std::size_t r = 0; r < block.rows.size; ++r) {
    const auto row = std::span(whole).subspan(
        (block.rows.offset + r) * columns + block.columns.offset, block.columns.size);
    part.insert(part.end(), row.begin(), row.end());
  }
  return part;
}

void paste(std::span<const float> part, std::size_t columns, const MatrixBlock& block,
           std::vector<float>& whole) {
  for (std::size_t r = 0; r < block.rows.size; ++r) {
    for (std::size_t c = 0; c < block.columns.size; ++c) {
      whole[(block.rows.offset + r) * columns + block.columns.offset + c] =
          part[r * block.columns.size + c];
    }
  }
}

/// All three passes; Y, dX and dW end up in the parameters, one behind another.
class AllPasses final : public Program {
 public:
  AllPasses(const ProgramNode& node, const GridCase& at) : product(node, at.options) {
    const Matrices all(at);
    x_ = cut(all.x, at.options.inner, product.input());
    w_ = cut(all.w, at.options.columns, product.weight());
    dy_ = cut(all.dy, at.options.columns, product.output());
    const auto room = node.parameters();
    const auto y = room.first(product.output().size());
    const auto dx = room.subspan(y.size(), product.input().size());
    const auto dw = room.subspan(y.size() + dx.size(), product.weight().size());
    product.list_forward(x_, w_, y, stages_);
    product.list_backward(x_, w_, dy_, at.options.input_gradient ? dx : std::span<float>(), dw,
                          stages_);
  }
  std::span<const ProgramStage> stages() const override { return stages_; }

  GridProduct product;

 private:
  std::vector<float> x_;
  std::vector<float> w_;
  std::vector<float> dy_;
  std::vector<ProgramStage> stages_;
};

ProgramJob job_of(const GridCase& at) {
  const GridProductOptions& o = at.options;
  return {.nodes = at.nodes,
          .grid = at.grid,
          .dimension = o.rows * o.columns + o.rows * o.inner + o.inner * o.columns,
          .rounds = 1,
          .seed = kSeed,
          .build = [at](const ProgramNode& node) { return std::make_unique<AllPasses>(node, at); }};
}

/// The program of a node, of an algorithm of job_of.
AllPasses& passes_of(Algorithm& node) {
  return dynamic_cast<AllPasses&>(dynamic_cast<ProgramAlgorithm&>(node).program());
}

/// Whole results, put together from all nodes; copies are equal to the bit.
struct Whole {
  Whole(const GridCase& at, const ProgramRun& run) {
    const GridProductOptions& o = at.options;
    y.assign(o.rows * o.columns, NAN);
    dx.assign(o.rows * o.inner, NAN);
    dw.assign(o.inner * o.columns, NAN);
    ProgramRunner runner(job_of(at));
    for (Rank rank = 0; rank < at.nodes; ++rank) {
      const auto node = runner.algorithm(rank);
      const GridProduct& product = passes_of(*node).product;
      const auto model = std::span(run.models[static_cast<std::size_t>(rank)]);
      const std::size_t ys = product.output().size();
      const std::size_t xs = product.input().size();
      paste(model.first(ys), o.columns, product.output(), y);
      paste(model.subspan(ys, xs), o.inner, product.input(), dx);
      const auto of_weight = model.subspan(ys + xs, product.weight().size());
      const auto before = cut(dw, o.columns, product.weight());
      CHECK((before.empty() || std::isnan(before[0]) || same_bits(before, of_weight)));
      paste(of_weight, o.columns, product.weight(), dw);
    }
  }

  std::vector<float> y;
  std::vector<float> dx;
  std::vector<float> dw;
};

Whole run_case(const GridCase& at, const std::string& driver = "eager") {
  const ProgramRun run = ProgramRunner(job_of(at)).run(driver);
  for (const Status& status : run.statuses) {
    CAPTURE(status.message());
    REQUIRE(status.ok());
  }
  return {at, run};
}

std::vector<float> transposed(std::size_t rows, std::size_t columns, const std::vector<float>& x) {
  std::vector<float> out(x.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      out[c * rows + r] = x[r * columns + c];
    }
  }
  return out;
}

/// a b by three loops, with the inner sum cut into parts: a sum of each, these then added up.
std::vector<float> blocked(const ProductShape& shape, const std::vector<float>& a,
                           const std::vector<float>& b, int parts) {
  std::vector<float> out(shape.rows * shape.columns);
  for (int part = 0; part < parts; ++part) {
    const Chunk inner = chunk_of(shape.inner, parts, part);
    for (std::size_t i = 0; i < shape.rows; ++i) {
      for (std::size_t j = 0; j < shape.columns; ++j) {
        float sum = 0;
        for (std::size_t k = inner.offset; k < inner.offset + inner.size; ++k) {
          sum += a[i * shape.inner + k] * b[k * shape.columns + j];
        }
        out[i * shape.columns + j] += sum;
      }
    }
  }
  return out;
}

/// The largest error of a product, in units of what rounding may do: (inner + parts) 2⁻²⁴ Σ|a b|.
double worst_error(const ProductShape& shape, const std::vector<float>& a,
                   const std::vector<float>& b, const std::vector<float>& found) {
  double worst = 0;
  for (std::size_t i = 0; i < shape.rows; ++i) {
    for (std::size_t j = 0; j < shape.columns; ++j) {
      double sum = 0;
      double size = 0;
      for (std::size_t k = 0; k < shape.inner; ++k) {
        const double term = static_cast<double>(a[i * shape.inner + k]) *
                            static_cast<double>(b[k * shape.columns + j]);
        sum += term;
        size += std::abs(term);
      }
      const double error = std::abs(static_cast<double>(found[i * shape.columns + j]) - sum);
      const double unit = static_cast<double>(shape.inner + 8) * std::ldexp(size, -24);
      worst = std::isfinite(error) ? std::max(worst, error / unit) : INFINITY;
    }
  }
  return worst;
}

void check_results(const GridCase& at, const Whole& got) {
  const GridProductOptions& o = at.options;
  const Matrices all(at);
  CHECK(worst_error({o.rows, o.inner, o.columns}, all.x, all.w, got.y) <= 1);
  CHECK(worst_error({o.rows, o.columns, o.inner}, all.dy, transposed(o.inner, o.columns, all.w),
                    got.dx) <= 1);
  CHECK(worst_error({o.inner, o.rows, o.columns}, transposed(o.rows, o.inner, all.x), all.dy,
                    got.dw) <= 1);
}

std::vector<GridCase> some_cases() {
  return {planes(1, 5, 4, 3), planes(2, 64, 32, 48), planes(3, 10, 7, 11),    planes(2, 1, 1, 1),
          planes(4, 5, 6, 3), planes(2, 9, 7, 5, 2), planes(2, 33, 12, 8, 3), planes(1, 9, 5, 4, 4),
          cube(1, 5, 4, 3),   cube(2, 64, 32, 48),   cube(2, 9, 7, 5),        cube(2, 1, 1, 1),
          cube(3, 20, 11, 13)};
}

}  // namespace

TEST_CASE("a product on a grid and its gradients are those of one node, whatever divides") {
  CAPTURE(kSeed);
  for (const GridCase& at : some_cases()) {
    CAPTURE(at.grid);
    CAPTURE(at.options.rows);
    check_results(at, run_case(at));
  }
}

TEST_CASE("products of whole numbers on a grid are exact") {
  CAPTURE(kSeed);
  for (GridCase at : some_cases()) {
    CAPTURE(at.grid);
    CAPTURE(at.options.rows);
    at.integers = true;
    const Whole got = run_case(at);
    const GridProductOptions& o = at.options;
    const Matrices all(at);
    CHECK(got.y == blocked({o.rows, o.inner, o.columns}, all.x, all.w, 1));
    CHECK(got.dx ==
          blocked({o.rows, o.columns, o.inner}, all.dy, transposed(o.inner, o.columns, all.w), 1));
    CHECK(got.dw ==
          blocked({o.inner, o.rows, o.columns}, transposed(o.rows, o.inner, all.x), all.dy, 1));
  }
}

TEST_CASE("planes are the product of one node cut along the inner sum, to the bit") {
  CAPTURE(kSeed);
  for (const GridCase& at : {planes(1, 6, 5, 4), planes(2, 12, 9, 7), planes(3, 10, 7, 11),
                             planes(4, 21, 18, 9), planes(2, 1, 1, 1)}) {
    CAPTURE(at.grid);
    const Whole got = run_case(at);
    const GridProductOptions& o = at.options;
    const Matrices all(at);
    const int q = static_cast<int>(std::lround(std::sqrt(at.nodes)));
    CHECK(same_bits(got.y, blocked({o.rows, o.inner, o.columns}, all.x, all.w, q)));
    CHECK(same_bits(got.dx, blocked({o.rows, o.columns, o.inner}, all.dy,
                                    transposed(o.inner, o.columns, all.w), q)));
    CHECK(same_bits(got.dw, blocked({o.inner, o.rows, o.columns},
                                    transposed(o.rows, o.inner, all.x), all.dy, q)));
  }
}

TEST_CASE("trees and direct broadcasts make the same product, to the bit") {
  CAPTURE(kSeed);
  for (GridCase at : {planes(2, 12, 9, 7), planes(5, 11, 12, 13)}) {
    CAPTURE(at.grid);
    at.options.broadcast = CollectiveForm::direct;
    const Whole direct = run_case(at);
    at.options.broadcast = CollectiveForm::tree;
    const Whole tree = run_case(at);
    CHECK(same_bits(direct.y, tree.y));
    CHECK(same_bits(direct.dx, tree.dx));
    CHECK(same_bits(direct.dw, tree.dw));
  }
}

TEST_CASE("products on a grid give the same bits in every driver, and carry what they said") {
  CAPTURE(kSeed);
  for (GridCase at : {planes(2, 9, 7, 5), planes(2, 9, 7, 5, 2), cube(2, 9, 7, 5)}) {
    for (const char* compressor : {"none", "quant:8"}) {
      CAPTURE(at.grid);
      CAPTURE(at.options.form);
      CAPTURE(std::string(compressor));
      at.options.compressor = compressor;
      at.options.gradient_compressor = compressor;
      at.options.weight_gradient_compressor = compressor;
      ProgramJob job = job_of(at);
      job.rounds = 2;
      check_alike(job, drivers());
    }
  }
}

TEST_CASE("what a node of a grid receives is what the formulas say") {
  const auto received = [](const GridCase& at, Rank rank) {
    ProgramRunner runner(job_of(at));
    const auto node = runner.algorithm(rank);
    std::uint64_t elements = 0;
    for (const auto& [peer, edge] : passes_of(*node).product.volume().received) {
      elements += edge.elements;
    }
    return elements;
  };
  constexpr std::uint64_t kM = 48;
  constexpr std::uint64_t kK = 24;
  constexpr std::uint64_t kN = 72;
  for (const int side : {2, 3, 4}) {
    for (const int layers : {1, 2, 3}) {
      CAPTURE(side);
      CAPTURE(layers);
      const auto q = static_cast<std::uint64_t>(side);
      const auto d = static_cast<std::uint64_t>(layers);
      const GridCase at = planes(side, kM * d, kK * q, kN * q * d, layers);
      const std::uint64_t x = kM * kK * q;          // M K / d
      const std::uint64_t w = kK * q * kN * q * d;  // K N
      const std::uint64_t depth = 2 * (d - 1) * w / d / (q * q);
      for (Rank rank = 0; rank < at.nodes; ++rank) {
        CHECK(received(at, rank) == 3 * (q - 1) * (x + w) / (q * q) + depth);
      }
    }
  }
  for (const int side : {2, 3}) {
    CAPTURE(side);
    const auto q = static_cast<std::uint64_t>(side);
    const GridCase at = cube(side, kM * 3, kK * 3, kN * 3);
    const std::uint64_t matrices = 9 * (kM * kK + kK * kN + kM * kN);
    for (Rank rank = 0; rank < at.nodes; ++rank) {
      CHECK(received(at, rank) == 2 * (q - 1) * matrices / (q * q * q));
    }
  }
}

TEST_CASE("without dX a product sends less, and its other results are the same") {
  CAPTURE(kSeed);
  for (GridCase at : {planes(2, 8, 6, 4), cube(2, 8, 6, 4)}) {
    CAPTURE(at.options.form);
    const auto bytes = [&] {
      std::uint64_t sum = 0;
      for (const auto& [edge, traffic] : foretold(job_of(at))) {
        sum += traffic.bytes;
      }
      return sum;
    };
    const Whole all = run_case(at);
    const std::uint64_t before = bytes();
    at.options.input_gradient = false;
    const Whole less = run_case(at);
    CHECK(same_bits(less.y, all.y));
    CHECK(same_bits(less.dw, all.dw));
    CHECK(bytes() < before);
  }
}

namespace {

/// Two products of a cube, one behind the other, and back.
class Chain final : public Program {
 public:
  Chain(const ProgramNode& node, const GridCase& at, bool swapped)
      : first(node, at.options), second(node, next(at.options, swapped)) {
    const Matrices all(at);
    const std::size_t k = at.options.inner;
    const std::size_t n = at.options.columns;
    x_ = cut(all.x, k, first.input());
    w_ = cut(all.w, n, first.weight());
    // The second weights are the transposed first ones, and what comes back at the end is dy = y.
    v_ = cut(transposed(k, n, all.w), k, second.weight());
    y_.resize(first.output().size());
    z_.resize(second.output().size());
    dy_.resize(y_.size());
    dw_.resize(w_.size());
    dv_.resize(v_.size());
    const auto dx = node.parameters().first(x_.size());
    const auto in = std::span(y_).first(second.input().size());
    first.list_forward(x_, w_, y_, stages_);
    second.list_forward(in, v_, z_, stages_);
    second.list_backward(in, v_, z_, dy_, dv_, stages_);
    first.list_backward(x_, w_, dy_, dx, dw_, stages_);
  }
  static GridProductOptions next(const GridProductOptions& before, bool swapped) {
    GridProductOptions after = before;
    after.name = "second";
    after.inner = before.columns;
    after.columns = before.inner;
    if (swapped) {
      std::swap(after.column, after.depth);
    }
    return after;
  }
  std::span<const ProgramStage> stages() const override { return stages_; }

  GridProduct first;
  GridProduct second;

 private:
  std::vector<float> x_, w_, v_, y_, z_, dy_, dw_, dv_;
  std::vector<ProgramStage> stages_;
};

}  // namespace

TEST_CASE("in a cube the next product takes Y as it lies, with column and depth exchanged") {
  CAPTURE(kSeed);
  for (const int q : {2, 3}) {
    CAPTURE(q);
    const GridCase at = cube(q, 36, 36, 36);
    const auto run = [&](bool swapped) {
      ProgramJob job = job_of(at);
      job.build = [at, swapped](const ProgramNode& node) {
        return std::make_unique<Chain>(node, at, swapped);
      };
      ProgramRunner runner(job);
      std::vector<float> dx(at.options.rows * at.options.inner);
      const ProgramRun done = runner.run("eager");
      REQUIRE(done.ok());
      ProgramRunner again(job);
      for (Rank rank = 0; rank < at.nodes; ++rank) {
        const auto node = again.algorithm(rank);
        const auto& chain = dynamic_cast<Chain&>(dynamic_cast<ProgramAlgorithm&>(*node).program());
        const MatrixBlock block = chain.first.input();
        paste(std::span(done.models[static_cast<std::size_t>(rank)]).first(block.size()),
              at.options.inner, block, dx);
      }
      return dx;
    };
    // dx = ((x w) wᵀ w) wᵀ
    const Matrices all(at);
    const std::size_t n = 36;
    const ProductShape square = {n, n, n};
    const auto turned = transposed(n, n, all.w);
    auto due = blocked(square, all.x, all.w, 1);
    for (const auto& factor : {turned, all.w, turned}) {
      due = blocked(square, due, factor, 1);
    }
    const auto off = [&](const std::vector<float>& found) {
      double error = 0;
      double size = 0;
      for (std::size_t i = 0; i < due.size(); ++i) {
        error += std::pow(static_cast<double>(found[i] - due[i]), 2);
        size += std::pow(static_cast<double>(due[i]), 2);
      }
      return std::sqrt(error / size);
    };
    CHECK(off(run(true)) < 1e-5);
    CHECK(off(run(false)) > 0.1);  // all sizes fit, and the result is wrong
  }
}

TEST_CASE("8 bits of a product's panels lose little, and its copies stay equal") {
  CAPTURE(kSeed);
  const auto off = [](const std::vector<float>& a, const std::vector<float>& b) {
    double error = 0;
    double size = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      error += std::pow(static_cast<double>(a[i] - b[i]), 2);
      size += std::pow(static_cast<double>(b[i]), 2);
    }
    return std::sqrt(error / size);
  };
  for (GridCase at : {planes(2, 64, 32, 48), planes(2, 64, 32, 48, 2), cube(2, 64, 32, 48)}) {
    CAPTURE(at.grid);
    CAPTURE(at.options.form);
    const Whole exact = run_case(at);
    at.options.compressor = "quant:8";
    at.options.gradient_compressor = "quant:8";
    at.options.weight_gradient_compressor = "quant:8";
    const Whole few = run_case(at);
    CHECK(off(few.y, exact.y) > 0);
    CHECK(off(few.y, exact.y) < 0.02);
    CHECK(off(few.dx, exact.dx) < 0.02);
    CHECK(off(few.dw, exact.dw) < 0.02);
  }
}

TEST_CASE("what is not finite ends a product in the stage that sends it, by name") {
  GridCase at = planes(2, 4, 4, 4);
  ProgramJob job = job_of(at);
  job.build = [at](const ProgramNode& node) {
    struct Broken final : Program {
      Broken(const ProgramNode& node, const GridCase& at) : product(node, at.options) {
        x.assign(product.input().size(), node.rank() == 1 ? INFINITY : 1.0F);
        w.assign(product.weight().size(), 1.0F);
        product.list_forward(x, w, node.parameters().first(product.output().size()), list);
      }
      std::span<const ProgramStage> stages() const override { return list; }
      GridProduct product;
      std::vector<float> x, w;
      std::vector<ProgramStage> list;
    };
    return std::make_unique<Broken>(node, at);
  };
  const ProgramRun run = ProgramRunner(job).run("eager");
  REQUIRE_FALSE(run.ok());
  CAPTURE(run.statuses[0].message());
  CHECK(run.statuses[0].fault() == Fault::non_finite);
  CHECK(run.statuses[0].message().find("stage product 4 x 4 x 4: X 1") != std::string::npos);
}

TEST_CASE("products that cannot be are refused") {
  const auto refused = [](int nodes, const std::string& grid, const GridProductOptions& options) {
    GridCase at{.nodes = nodes, .grid = grid, .options = options};
    try {
      ProgramRunner(job_of(at)).algorithm(0);
    } catch (const Error& error) {
      return error.field();
    }
    return std::string();
  };
  const std::string square = "row=2,column=2";
  CHECK(refused(4, square, {}).empty());
  CHECK(refused(4, square, {.rows = 0}) == "rows");
  CHECK(refused(4, square, {.inner = 0}) == "inner");
  CHECK(refused(4, square, {.columns = 0}) == "columns");
  CHECK(refused(4, square, {.depth = "depth"}) == "axis");
  CHECK(refused(4, square, {.column = "row"}) == "axis");
  CHECK(refused(4, square, {.form = GridForm::cube}) == "grid");
  CHECK(refused(6, "row=2,column=3", {}) == "grid");
  CHECK(refused(12, "row=2,column=2,depth=3", {.depth = "depth"}).empty());
  CHECK(refused(12, "row=2,column=2,depth=3", {.form = GridForm::cube, .depth = "depth"}) ==
        "grid");
  CHECK(refused(4, square, {.compressor = "quant:4"}) == "compressor");
  CHECK(refused(4, square, {.compressor = "fp16"}).empty());
  CHECK(refused(4, square, {.gradient_compressor = "fp16"}) == "compressor");
  CHECK(refused(4, square, {.weight_gradient_compressor = "sign"}).empty());
}

}  // namespace sotto::test::grid_product_test
