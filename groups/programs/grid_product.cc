#include <sotto/groups/programs/grid_product.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

void require_matrices(const GridProductOptions& options) {
  require_between("rows", options.rows, 1, kMostDimension);
  require_between("inner", options.inner, 1, kMostDimension);
  require_between("columns", options.columns, 1, kMostDimension);
}

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

/// Part `index` of what is in `block`, cut into `parts`.
Chunk part_of(const Chunk& block, int parts, int index) {
  const Chunk part = chunk_of(block.size, parts, index);
  return {.offset = block.offset + part.offset, .size = part.size};
}

}  // namespace

GridProduct::GridProduct(const ProgramNode& node, GridProductOptions options)
    : options_(std::move(options)) {
  require_matrices(options_);
  const NodeGrid& grid = node.grid();
  require_axes(options_, grid);
  along_row_ = node.member(options_.column);
  along_column_ = node.member(options_.row);
  along_depth_ = options_.depth.empty() ? alone(node) : node.member(options_.depth);
  along_row_.frames = std::make_shared<FrameRoom>();
  along_column_.frames = along_row_.frames;
  along_depth_.frames = along_row_.frames;
  node_ = along_row_.node;
  side_ = along_row_.group.size();
  layers_ = along_depth_.group.size();
  set_blocks(grid, node.rank());
  const std::size_t longest =
      std::max({input_bound().elements, weight_bound().elements, output_bound().elements});
  if (longest > kMostDimension) {
    refuse("grid", grid.text(),
           fmt::format("a node would have {} elements of a matrix, and {} are the most; take more "
                       "nodes",
                       longest, kMostDimension));
  }
  const bool cube = options_.form == GridForm::cube;
  const std::size_t x = cube ? block_rows_ * block_inner_ : input_bound().elements;
  const std::size_t w = cube ? block_inner_ * weight_.columns.size : weight_bound().elements;
  input_room_.resize(x);
  weight_room_.resize(w);
  output_room_.resize(block_rows_ * output_.columns.size);
  sum_room_.resize(std::max(x, w));
  transposed_room_.resize(x);
}

void GridProduct::set_blocks(const NodeGrid& grid, Rank rank) {
  const int i = grid.coordinate(options_.row, rank);
  const int j = grid.coordinate(options_.column, rank);
  const int l = along_depth_.group.position;
  if (options_.form == GridForm::planes) {
    const Chunk rows = chunk_of(options_.rows, layers_ * side_, l * side_ + i);
    input_ = {.rows = rows, .columns = chunk_of(options_.inner, side_, j)};
    weight_ = {.rows = chunk_of(options_.inner, side_, i),
               .columns = chunk_of(options_.columns, side_, j)};
    output_ = {.rows = rows, .columns = weight_.columns};
    block_rows_ = rows.size;
    return;
  }
  const Chunk rows = chunk_of(options_.rows, side_, i);
  const Chunk inner = chunk_of(options_.inner, side_, l);
  input_ = {.rows = part_of(rows, side_, j), .columns = inner};
  weight_ = {.rows = part_of(inner, side_, i), .columns = chunk_of(options_.columns, side_, j)};
  output_ = {.rows = part_of(rows, side_, l), .columns = weight_.columns};
  block_rows_ = rows.size;
  block_inner_ = inner.size;
}

VectorBound GridProduct::rows_bound(std::size_t width) const {
  if (options_.form == GridForm::planes) {
    const std::size_t block = longest_chunk(options_.rows, layers_ * side_) * width;
    return {.elements = block, .block = block};
  }
  const std::size_t rows = longest_chunk(options_.rows, side_);
  return {.elements = rows * width, .block = longest_chunk(rows, side_) * width};
}

VectorBound GridProduct::input_bound() const {
  return rows_bound(longest_chunk(options_.inner, side_));
}

VectorBound GridProduct::weight_bound() const {
  const std::size_t inner = longest_chunk(options_.inner, side_);
  const std::size_t columns = longest_chunk(options_.columns, side_);
  const bool cut = options_.form == GridForm::cube;
  return {.elements = inner * columns,
          .block = (cut ? longest_chunk(inner, side_) : inner) * columns};
}

VectorBound GridProduct::output_bound() const {
  return rows_bound(longest_chunk(options_.columns, side_));
}

ExchangeVolume GridProduct::volume() const {
  ExchangeVolume sum;
  for (const auto& collective : collectives_) {
    sum += collective->volume();
  }
  return sum;
}

std::size_t GridProduct::room_bytes() const {
  const std::size_t floats = input_room_.size() + weight_room_.size() + output_room_.size() +
                             sum_room_.size() + transposed_room_.size();
  return floats * sizeof(float) + along_row_.frames->bytes();
}

GridProduct::Way GridProduct::input_panel() const {
  return {"X", &along_row_, carried_by(Carried::activation, options_.compressor), input_bound()};
}

GridProduct::Way GridProduct::weight_panel() const {
  return {"W", &along_column_, carried_by(Carried::parameters, "none"), weight_bound()};
}

GridProduct::Way GridProduct::input_gradient_sum() const {
  return {"dX", &along_row_, carried_by(Carried::activation_gradient, options_.gradient_compressor),
          input_bound()};
}

GridProduct::Way GridProduct::weight_gradient_sum() const {
  return {"dW", &along_column_, carried_by(Carried::gradient, options_.weight_gradient_compressor),
          weight_bound()};
}

GridProduct::Way GridProduct::output_sum() const {
  return {"Y", &along_depth_, carried_by(Carried::activation, options_.compressor), output_bound()};
}

GridProduct::Way GridProduct::output_gradient() const {
  return {"dY", &along_depth_,
          carried_by(Carried::activation_gradient, options_.gradient_compressor), output_bound()};
}

// Stages.

double GridProduct::flops_of(const ProductShape& shape) {
  return 2.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.inner) *
         static_cast<double>(shape.columns);
}

void GridProduct::list_compute(const std::string& what, double flops,
                               std::function<Status()> compute, Stages& stages) const {
  if (options_.exchanges_only) {
    compute = [] { return Status(); };
  }
  stages.push_back({fmt::format("{} {} x {} x {}: {}", options_.name, options_.rows, options_.inner,
                                options_.columns, what),
                    [run = std::move(compute)](const RoundInput&) { return run(); }, nullptr,
                    flops});
}

void GridProduct::list_collective(const std::string& what, double flops,
                                  std::function<void()> compute,
                                  std::unique_ptr<VectorCollective> collective,
                                  std::span<float> vector, Stages& stages) {
  VectorCollective* const carried = collective.get();
  collectives_.push_back(std::move(collective));
  list_compute(what, flops, {}, stages);
  stages.back().compute = [this, run = std::move(compute), carried, vector](const RoundInput&) {
    if (!options_.exchanges_only) {
      run();
    }
    carried->begin(vector);
    return Status();
  };
  stages.back().collective = carried;
}

void GridProduct::list_panel(const Way& way, int l, std::span<const float> own,
                             std::span<float> panel, Stages& stages) {
  const VectorOptions options = {.elements = panel.size(),
                                 .form = options_.broadcast.value_or(usual_broadcast_form(side_)),
                                 .encoding = way.encoding,
                                 .bound = way.bound};
  const bool mine = way.member->group.position == l;
  list_collective(
      fmt::format("{} {}", way.what, l), 0,
      [this, mine, own, panel] {
        if (mine) {
          node_->ops().copy(own, panel);
        }
      },
      make_broadcast(*way.member, options, l), panel, stages);
}

void GridProduct::list_sum(const Way& way, int l, double flops, std::span<float> sum,
                           std::size_t elements,
                           const std::function<void(std::span<float>)>& compute, Stages& stages) {
  const bool mine = way.member->group.position == l;
  const std::span<float> summand = mine ? sum : std::span(sum_room_).first(elements);
  list_collective(
      fmt::format("{} {}", way.what, l), flops, [compute, summand] { compute(summand); },
      make_reduce(*way.member, {.elements = elements, .encoding = way.encoding, .bound = way.bound},
                  l),
      summand, stages);
}

void GridProduct::list_gather(const Way& way, std::span<const float> own, std::span<float> block,
                              std::size_t row, Stages& stages) {
  auto gather = make_all_gather(*way.member, {.elements = block.size(),
                                              .encoding = way.encoding,
                                              .row = std::max<std::size_t>(1, row),
                                              .bound = way.bound});
  const std::span<float> mine = gather->own_block().of(block);
  list_collective(
      way.what, 0, [this, own, mine] { node_->ops().copy(own, mine); }, std::move(gather), block,
      stages);
}

void GridProduct::list_scatter(const Way& way, double flops, std::function<void()> compute,
                               std::span<float> block, std::span<float> own, std::size_t row,
                               Stages& stages) {
  auto scatter = make_reduce_scatter(*way.member, {.elements = block.size(),
                                                   .encoding = way.encoding,
                                                   .row = std::max<std::size_t>(1, row),
                                                   .bound = way.bound});
  const std::span<float> mine = scatter->own_block().of(block);
  list_collective(way.what, flops, std::move(compute), std::move(scatter), block, stages);
  list_compute(
      way.what + " taken", 0,
      [this, own, mine, what = way.what] {
        node_->ops().copy(mine, own);
        return node_->require_finite(own, what);
      },
      stages);
}

void GridProduct::list_forward(std::span<const float> x, std::span<const float> w,
                               std::span<float> y, std::vector<ProgramStage>& stages) {
  check(x.size() == input_.size() && w.size() == weight_.size() && y.size() == output_.size(),
        "a product's matrices have the sizes of this node's blocks");
  if (options_.form == GridForm::planes) {
    list_planes_forward(x, w, y, stages);
  } else {
    list_cube_forward(x, w, y, stages);
  }
}

void GridProduct::list_backward(std::span<const float> x, std::span<const float> w,
                                std::span<const float> dy, std::span<float> dx, std::span<float> dw,
                                std::vector<ProgramStage>& stages) {
  check(!collectives_.empty(), "gradients are listed behind the product");
  check(x.size() == input_.size() && w.size() == weight_.size() && dy.size() == output_.size() &&
            dx.size() == (options_.input_gradient ? input_.size() : 0) &&
            dw.size() == weight_.size(),
        "gradients have the sizes of this node's blocks");
  if (options_.form == GridForm::cube) {
    list_cube_backward(dy, dx, dw, stages);
    return;
  }
  if (options_.input_gradient) {
    list_planes_input_gradient(w, dy, dx, stages);
  }
  list_planes_weight_gradient(x, dy, dw, stages);
}

void GridProduct::multiply_transpose(const ProductShape& shape, std::span<const float> a,
                                     std::span<const float> b, std::span<float> out) {
  const auto transposed = std::span(transposed_room_).first(shape.rows * shape.inner);
  transpose(shape.inner, shape.rows, a, transposed);
  product_.times(shape, transposed, b, out);
}

}  // namespace sotto
