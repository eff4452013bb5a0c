// A product on planes of nodes (programs/grid_product.h): panels are broadcast one by one, and sums
// go to one member at a time.
#include <algorithm>
#include <span>

#include <fmt/format.h>

#include <sotto/groups/internal/cut_product.h>
#include <sotto/groups/internal/product_axes.h>
#include <sotto/groups/internal/product_stages.h>

namespace sotto::internal {
namespace {

ProductBlocks planes_blocks(const ProductAxes& axes, const GridProductOptions& options) {
  const int side = axes.side();
  const Chunk rows = chunk_of(options.rows, axes.layers() * side, axes.l() * side + axes.i());
  const Chunk columns = chunk_of(options.columns, side, axes.j());
  return {.input = {.rows = rows, .columns = chunk_of(options.inner, side, axes.j())},
          .weight = {.rows = chunk_of(options.inner, side, axes.i()), .columns = columns},
          .output = {.rows = rows, .columns = columns}};
}

ProductBounds planes_bounds(const ProductAxes& axes, const GridProductOptions& options) {
  const std::size_t rows = longest_chunk(options.rows, axes.layers() * axes.side());
  const std::size_t inner = longest_chunk(options.inner, axes.side());
  const std::size_t columns = longest_chunk(options.columns, axes.side());
  const auto whole = [](std::size_t elements) {
    return VectorBound{.elements = elements, .block = elements};
  };
  return {.input = whole(rows * inner),
          .weight = whole(inner * columns),
          .output = whole(rows * columns)};
}

class PlanesProduct final : public CutProduct {
 public:
  PlanesProduct(const GridProductOptions& options, const ProductAxes& axes,
                const ProductBlocks& blocks, const ProductWays& ways);

  const ProductBlocks& blocks() const override { return blocks_; }
  ExchangeVolume volume() const override { return stages_.volume(); }
  std::size_t room_bytes() const override { return room_.bytes() + axes_.row.frames->bytes(); }

  void list_forward(std::span<const float> x, std::span<const float> w, std::span<float> y,
                    std::vector<ProgramStage>& stages) override;
  void list_backward(std::span<const float> x, std::span<const float> w, std::span<const float> dy,
                     std::span<float> dx, std::span<float> dw,
                     std::vector<ProgramStage>& stages) override;

 private:
  void list_input_gradient(std::span<const float> w, std::span<const float> dy, std::span<float> dx,
                           std::vector<ProgramStage>& stages);
  void list_weight_gradient(std::span<const float> x, std::span<const float> dy,
                            std::span<float> dw, std::vector<ProgramStage>& stages);
  std::size_t rows() const { return blocks_.input.rows.size; }
  std::size_t columns() const { return blocks_.output.columns.size; }
  /// Columns of panel l of X, and rows of that of W.
  std::size_t inner(int l) const { return chunk_of(inner_, axes_.side(), l).size; }

  ProductAxes axes_;
  std::size_t inner_;
  bool input_gradient_;
  ProductBlocks blocks_;
  ProductWays ways_;
  ProductStages stages_;
  ProductRoom room_;
};

PlanesProduct::PlanesProduct(const GridProductOptions& options, const ProductAxes& axes,
                             const ProductBlocks& blocks, const ProductWays& ways)
    : axes_(axes),
      inner_(options.inner),
      input_gradient_(options.input_gradient),
      blocks_(blocks),
      ways_(ways),
      stages_(*axes.row.node, options),
      room_(ways.x.bound.elements, ways.w.bound.elements,
            blocks.input.rows.size * blocks.output.columns.size) {}

void PlanesProduct::list_forward(std::span<const float> x, std::span<const float> w,
                                 std::span<float> y, std::vector<ProgramStage>& stages) {
  for (int l = 0; l < axes_.side(); ++l) {
    const ProductShape shape = {rows(), inner(l), columns()};
    const auto xs = std::span(room_.input).first(shape.rows * shape.inner);
    const auto ws = std::span(room_.weight).first(shape.inner * shape.columns);
    stages_.list_panel(ways_.x, l, x, xs, stages);
    stages_.list_panel(ways_.w, l, w, ws, stages);
    const bool last = l + 1 == axes_.side();
    stages_.list_compute(
        fmt::format("Y {}", l), flops_of(shape),
        [this, shape, xs, ws, y, l, last] {
          const LocalNode& node = *axes_.row.node;
          const auto summand = l == 0 ? y : std::span(room_.output).first(y.size());
          room_.product.times(shape, xs, ws, summand);
          if (l > 0) {
            node.ops().axpy(1, summand, y);
          }
          return last ? node.require_finite(y, "product") : Status();
        },
        stages);
  }
}

void PlanesProduct::list_backward(std::span<const float> x, std::span<const float> w,
                                  std::span<const float> dy, std::span<float> dx,
                                  std::span<float> dw, std::vector<ProgramStage>& stages) {
  if (input_gradient_) {
    list_input_gradient(w, dy, dx, stages);
  }
  list_weight_gradient(x, dy, dw, stages);
}

void PlanesProduct::list_input_gradient(std::span<const float> w, std::span<const float> dy,
                                        std::span<float> dx, std::vector<ProgramStage>& stages) {
  for (int l = 0; l < axes_.side(); ++l) {
    const ProductShape shape = {rows(), columns(), inner(l)};
    const auto ws = std::span(room_.weight).first(shape.columns * shape.inner);
    stages_.list_panel(ways_.w, l, w, ws, stages);
    stages_.list_sum(
        ways_.dx, l, flops_of(shape), dx, std::span(room_.sum).first(shape.rows * shape.columns),
        [this, shape, ws, dy](std::span<float> out) {
          room_.product.times_transposed(shape, dy, ws, out);
        },
        stages);
  }
  stages_.list_check("dX taken", dx, "gradient of the input", stages);
}

void PlanesProduct::list_weight_gradient(std::span<const float> x, std::span<const float> dy,
                                         std::span<float> dw, std::vector<ProgramStage>& stages) {
  for (int l = 0; l < axes_.side(); ++l) {
    const ProductShape shape = {inner(l), rows(), columns()};
    const auto xs = std::span(room_.input).first(shape.inner * shape.rows);
    stages_.list_panel(ways_.x, l, x, xs, stages);
    stages_.list_sum(
        ways_.dw, l, flops_of(shape), dw, std::span(room_.sum).first(shape.rows * shape.columns),
        [this, shape, xs, dy](std::span<float> out) {
          room_.multiply_transpose(shape, xs, dy, out);
        },
        stages);
  }
  ProductWay planes = ways_.dw;
  planes.member = axes_.depth;
  planes.bound.block = longest_chunk(planes.bound.elements, axes_.layers());
  stages_.list_all_reduce("dW of all planes", planes, dw, stages);
  stages_.list_check("dW taken", dw, "gradient of the weights", stages);
}

}  // namespace

std::unique_ptr<CutProduct> make_planes_product(const ProgramNode& node,
                                                const GridProductOptions& options) {
  const ProductAxes axes(node, options);
  const ProductWays ways(axes, options, fitting(planes_bounds(axes, options), node.grid()));
  return std::make_unique<PlanesProduct>(options, axes, planes_blocks(axes, options), ways);
}

}  // namespace sotto::internal
