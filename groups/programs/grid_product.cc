#include <sotto/groups/programs/grid_product.h>

#include <utility>

#include <sotto/base/error.h>
#include <sotto/groups/internal/cut_product.h>

namespace sotto {
namespace {

/// Checks the options, for initializers.
GridProductOptions checked_product(GridProductOptions options) {
  require_between("rows", options.rows, 1, kMostDimension);
  require_between("inner", options.inner, 1, kMostDimension);
  require_between("columns", options.columns, 1, kMostDimension);
  return options;
}

}  // namespace

GridProduct::GridProduct(const ProgramNode& node, GridProductOptions options)
    : options_(checked_product(std::move(options))),
      cut_(options_.form == GridForm::planes ? internal::make_planes_product(node, options_)
                                             : internal::make_cube_product(node, options_)) {}

GridProduct::~GridProduct() = default;

MatrixBlock GridProduct::input() const { return cut_->blocks().input; }
MatrixBlock GridProduct::weight() const { return cut_->blocks().weight; }
MatrixBlock GridProduct::output() const { return cut_->blocks().output; }

void GridProduct::list_forward(std::span<const float> x, std::span<const float> w,
                               std::span<float> y, std::vector<ProgramStage>& stages) {
  check(x.size() == input().size() && w.size() == weight().size() && y.size() == output().size(),
        "a product's matrices have the sizes of this node's blocks");
  cut_->list_forward(x, w, y, stages);
  listed_forward_ = true;
}

void GridProduct::list_backward(std::span<const float> x, std::span<const float> w,
                                std::span<const float> dy, std::span<float> dx, std::span<float> dw,
                                std::vector<ProgramStage>& stages) {
  check(listed_forward_, "gradients are listed behind the product");
  check(x.size() == input().size() && w.size() == weight().size() && dy.size() == output().size() &&
            dx.size() == (options_.input_gradient ? input().size() : 0) &&
            dw.size() == weight().size(),
        "gradients have the sizes of this node's blocks");
  cut_->list_backward(x, w, dy, dx, dw, stages);
}

ExchangeVolume GridProduct::volume() const { return cut_->volume(); }

std::size_t GridProduct::room_bytes() const { return cut_->room_bytes(); }

}  // namespace sotto
