// The stages of a product on planes of nodes (grid_product.h): panels are broadcast one by one, and
// sums go to one member at a time.
#include <span>

#include <fmt/format.h>

#include <sotto/groups/programs/grid_product.h>

namespace sotto {

void GridProduct::list_planes_forward(std::span<const float> x, std::span<const float> w,
                                      std::span<float> y, Stages& stages) {
  for (int l = 0; l < side_; ++l) {
    const ProductShape shape = {block_rows_, inner_of(l), output_.columns.size};
    const auto xs = std::span(input_room_).first(shape.rows * shape.inner);
    const auto ws = std::span(weight_room_).first(shape.inner * shape.columns);
    list_panel(input_panel(), l, x, xs, stages);
    list_panel(weight_panel(), l, w, ws, stages);
    const bool last = l + 1 == side_;
    list_compute(
        fmt::format("Y {}", l), flops_of(shape),
        [this, shape, xs, ws, y, l, last] {
          const auto summand = l == 0 ? y : std::span(output_room_).first(y.size());
          product_.times(shape, xs, ws, summand);
          if (l > 0) {
            node_->ops().axpy(1, summand, y);
          }
          return last ? node_->require_finite(y, "product") : Status();
        },
        stages);
  }
}

void GridProduct::list_planes_input_gradient(std::span<const float> w, std::span<const float> dy,
                                             std::span<float> dx, Stages& stages) {
  const Way sum = input_gradient_sum();
  for (int l = 0; l < side_; ++l) {
    const ProductShape shape = {block_rows_, output_.columns.size, inner_of(l)};
    const auto ws = std::span(weight_room_).first(shape.columns * shape.inner);
    list_panel(weight_panel(), l, w, ws, stages);
    list_sum(
        sum, l, flops_of(shape), dx, shape.rows * shape.columns,
        [this, shape, ws, dy](std::span<float> out) {
          product_.times_transposed(shape, dy, ws, out);
        },
        stages);
  }
  list_compute(
      "dX taken", 0, [this, dx] { return node_->require_finite(dx, "gradient of the input"); },
      stages);
}

void GridProduct::list_planes_weight_gradient(std::span<const float> x, std::span<const float> dy,
                                              std::span<float> dw, Stages& stages) {
  const Way sum = weight_gradient_sum();
  for (int l = 0; l < side_; ++l) {
    const ProductShape shape = {inner_of(l), block_rows_, output_.columns.size};
    const auto xs = std::span(input_room_).first(shape.inner * shape.rows);
    list_panel(input_panel(), l, x, xs, stages);
    list_sum(
        sum, l, flops_of(shape), dw, shape.rows * shape.columns,
        [this, shape, xs, dy](std::span<float> out) { multiply_transpose(shape, xs, dy, out); },
        stages);
  }
  const std::size_t most = sum.bound.elements;
  list_collective(
      "dW of all planes", 0, [] {},
      make_all_reduce(along_depth_,
                      {.elements = dw.size(),
                       .encoding = sum.encoding,
                       .bound = {.elements = most, .block = longest_chunk(most, layers_)}}),
      dw, stages);
  list_compute(
      "dW taken", 0, [this, dw] { return node_->require_finite(dw, "gradient of the weights"); },
      stages);
}

}  // namespace sotto
