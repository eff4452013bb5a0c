#include <sotto/groups/internal/product_axes.h>

#include <algorithm>
#include <cstddef>
#include <memory>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto::internal {
namespace {

void require_axes(const GridProductOptions& options, const NodeGrid& grid) {
  if (options.row == options.column || options.row == options.depth ||
      options.column == options.depth) {
    refuse("axis", options.depth == options.row ? options.row : options.column,
           "a product has another axis for each of rows, columns and depth; name different ones");
  }
  const int side = grid.size(options.row);
  const bool cube = options.form == GridForm::cube;
  if (cube && options.depth.empty()) {
    refuse("grid", grid.text(), "a cube has a depth; name its axis, or take planes");
  }
  if (grid.size(options.column) != side || (cube && grid.size(options.depth) != side)) {
    refuse("grid", grid.text(),
           fmt::format("the axes {}, {}{}{} of a {} are equally long; make them so", options.row,
                       options.column, cube ? ", " : "", cube ? options.depth : "",
                       cube ? "cube" : "plane"));
  }
}

/// The group of this node alone, for a depth of one.
GroupMember alone(const ProgramNode& node) {
  GroupMember member = node.everyone();
  member.group = {.number = member.group.number, .ranks = {node.rank()}, .position = 0};
  return member;
}

Encoding carried_by(Carried data, const std::string& compressor) {
  const bool remembers = data == Carried::gradient && compressor != "none";
  return {.data = data,
          .memory = remembers ? ErrorMemory::feedback : ErrorMemory::none,
          .compressor = compressor};
}

}  // namespace

ProductAxes::ProductAxes(const ProgramNode& node, const GridProductOptions& options) {
  require_axes(options, node.grid());
  row = node.member(options.column);
  column = node.member(options.row);
  depth = options.depth.empty() ? alone(node) : node.member(options.depth);
  row.frames = std::make_shared<FrameRoom>();
  column.frames = row.frames;
  depth.frames = row.frames;
}

const ProductBounds& fitting(const ProductBounds& bounds, const NodeGrid& grid) {
  const std::size_t longest =
      std::max({bounds.input.elements, bounds.weight.elements, bounds.output.elements});
  if (longest > kMostDimension) {
    refuse("grid", grid.text(),
           fmt::format("a node would have {} elements of a matrix, and {} are the most; take more "
                       "nodes",
                       longest, kMostDimension));
  }
  return bounds;
}

ProductWays::ProductWays(const ProductAxes& axes, const GridProductOptions& options,
                         const ProductBounds& bounds) {
  const Encoding activation = carried_by(Carried::activation, options.compressor);
  const Encoding gradient = carried_by(Carried::activation_gradient, options.gradient_compressor);
  x = {"X", axes.row, activation, bounds.input};
  w = {"W", axes.column, carried_by(Carried::parameters, "none"), bounds.weight};
  y = {"Y", axes.depth, activation, bounds.output};
  dx = {"dX", axes.row, gradient, bounds.input};
  dw = {"dW", axes.column, carried_by(Carried::gradient, options.weight_gradient_compressor),
        bounds.weight};
  dy = {"dY", axes.depth, gradient, bounds.output};
}

}  // namespace sotto::internal
