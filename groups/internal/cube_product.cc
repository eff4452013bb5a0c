// A product on a cube of nodes (programs/grid_product.h): whole blocks are gathered, and sums
// scattered.
#include <memory>
#include <span>

#include <sotto/groups/internal/cut_product.h>
#include <sotto/groups/internal/product_axes.h>
#include <sotto/groups/internal/product_stages.h>

namespace sotto::internal {
namespace {

/// Part `index` of what is in `block`, cut into `parts`.
Chunk part_of(const Chunk& block, int parts, int index) {
  const Chunk part = chunk_of(block.size, parts, index);
  return {.offset = block.offset + part.offset, .size = part.size};
}

ProductBlocks cube_blocks(const ProductAxes& axes, const GridProductOptions& options) {
  const int side = axes.side();
  const Chunk rows = chunk_of(options.rows, side, axes.i());
  const Chunk inner = chunk_of(options.inner, side, axes.l());
  const Chunk columns = chunk_of(options.columns, side, axes.j());
  return {.input = {.rows = part_of(rows, side, axes.j()), .columns = inner},
          .weight = {.rows = part_of(inner, side, axes.i()), .columns = columns},
          .output = {.rows = part_of(rows, side, axes.l()), .columns = columns}};
}

ProductBounds cube_bounds(const ProductAxes& axes, const GridProductOptions& options) {
  const int side = axes.side();
  const std::size_t columns = longest_chunk(options.columns, side);
  const std::size_t inner = longest_chunk(options.inner, side);
  const std::size_t rows = longest_chunk(options.rows, side);
  const auto cut = [side](std::size_t height, std::size_t width) {
    return VectorBound{.elements = height * width, .block = longest_chunk(height, side) * width};
  };
  return {.input = cut(rows, inner), .weight = cut(inner, columns), .output = cut(rows, columns)};
}

class CubeProduct final : public CutProduct {
 public:
  CubeProduct(const GridProductOptions& options, const ProductAxes& axes,
              const ProductBlocks& blocks, const ProductWays& ways, const ProductShape& shape);

  const ProductBlocks& blocks() const override { return blocks_; }
  ExchangeVolume volume() const override { return stages_.volume(); }
  std::size_t room_bytes() const override { return room_.bytes() + frames_->bytes(); }

  void list_forward(std::span<const float> x, std::span<const float> w, std::span<float> y,
                    std::vector<ProgramStage>& stages) override;
  void list_backward(std::span<const float> x, std::span<const float> w, std::span<const float> dy,
                     std::span<float> dx, std::span<float> dw,
                     std::vector<ProgramStage>& stages) override;

 private:
  std::shared_ptr<FrameRoom> frames_;
  bool input_gradient_;
  ProductBlocks blocks_;
  ProductShape shape_;  // of X_il W_lj, which this node multiplies
  ProductWays ways_;
  ProductStages stages_;
  ProductRoom room_;
};

CubeProduct::CubeProduct(const GridProductOptions& options, const ProductAxes& axes,
                         const ProductBlocks& blocks, const ProductWays& ways,
                         const ProductShape& shape)
    : frames_(axes.row.frames),
      input_gradient_(options.input_gradient),
      blocks_(blocks),
      shape_(shape),
      ways_(ways),
      stages_(*axes.row.node, options),
      room_(shape.rows * shape.inner, shape.inner * shape.columns, shape.rows * shape.columns) {}

void CubeProduct::list_forward(std::span<const float> x, std::span<const float> w,
                               std::span<float> y, std::vector<ProgramStage>& stages) {
  stages_.list_gather(ways_.x, x, room_.input, shape_.inner, stages);
  stages_.list_gather(ways_.w, w, room_.weight, shape_.columns, stages);
  stages_.list_scatter(
      ways_.y, flops_of(shape_),
      [this] { room_.product.times(shape_, room_.input, room_.weight, room_.output); },
      room_.output, y, shape_.columns, stages);
}

/// X and W are still where the pass forward has gathered them.
void CubeProduct::list_backward(std::span<const float> /*x*/, std::span<const float> /*w*/,
                                std::span<const float> dy, std::span<float> dx, std::span<float> dw,
                                std::vector<ProgramStage>& stages) {
  stages_.list_gather(ways_.dy, dy, room_.output, shape_.columns, stages);
  if (input_gradient_) {
    const ProductShape shape = {shape_.rows, shape_.columns, shape_.inner};
    const auto block = std::span(room_.sum).first(shape.rows * shape.columns);
    stages_.list_scatter(
        ways_.dx, flops_of(shape),
        [this, shape, block] {
          room_.product.times_transposed(shape, room_.output, room_.weight, block);
        },
        block, dx, shape.columns, stages);
  }
  const ProductShape shape = {shape_.inner, shape_.rows, shape_.columns};
  const auto block = std::span(room_.sum).first(shape.rows * shape.columns);
  stages_.list_scatter(
      ways_.dw, flops_of(shape),
      [this, shape, block] { room_.multiply_transpose(shape, room_.input, room_.output, block); },
      block, dw, shape.columns, stages);
}

}  // namespace

std::unique_ptr<CutProduct> make_cube_product(const ProgramNode& node,
                                              const GridProductOptions& options) {
  const ProductAxes axes(node, options);
  const ProductWays ways(axes, options, fitting(cube_bounds(axes, options), node.grid()));
  const ProductBlocks blocks = cube_blocks(axes, options);
  const ProductShape shape = {.rows = chunk_of(options.rows, axes.side(), axes.i()).size,
                              .inner = blocks.input.columns.size,
                              .columns = blocks.output.columns.size};
  return std::make_unique<CubeProduct>(options, axes, blocks, ways, shape);
}

}  // namespace sotto::internal
