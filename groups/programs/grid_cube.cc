// The stages of a product on a cube of nodes (grid_product.h): whole blocks are gathered, and sums
// scattered.
#include <span>

#include <sotto/groups/programs/grid_product.h>

namespace sotto {

void GridProduct::list_cube_forward(std::span<const float> x, std::span<const float> w,
                                    std::span<float> y, Stages& stages) {
  const ProductShape shape = {block_rows_, block_inner_, output_.columns.size};
  list_gather(input_panel(), x, input_room_, shape.inner, stages);
  list_gather(weight_panel(), w, weight_room_, shape.columns, stages);
  list_scatter(
      output_sum(), flops_of(shape),
      [this, shape] { product_.times(shape, input_room_, weight_room_, output_room_); },
      output_room_, y, shape.columns, stages);
}

void GridProduct::list_cube_backward(std::span<const float> dy, std::span<float> dx,
                                     std::span<float> dw, Stages& stages) {
  const std::size_t rows = block_rows_;
  const std::size_t inner = block_inner_;
  const std::size_t columns = output_.columns.size;
  list_gather(output_gradient(), dy, output_room_, columns, stages);
  const double flops = flops_of({rows, inner, columns});
  if (options_.input_gradient) {
    const auto block = std::span(sum_room_).first(rows * inner);
    list_scatter(
        input_gradient_sum(), flops,
        [this, rows, inner, columns, block] {
          product_.times_transposed({rows, columns, inner}, output_room_, weight_room_, block);
        },
        block, dx, inner, stages);
  }
  const auto block = std::span(sum_room_).first(inner * columns);
  list_scatter(
      weight_gradient_sum(), flops,
      [this, rows, inner, columns, block] {
        multiply_transpose({inner, rows, columns}, input_room_, output_room_, block);
      },
      block, dw, columns, stages);
}

}  // namespace sotto
