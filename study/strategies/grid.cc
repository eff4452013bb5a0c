// Products of rows with weights, cut over a grid of all nodes; what is no product of a block is
// averaged.
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/groups/programs/grid_product.h>
#include <sotto/study/strategies/internal/all_strategies.h>

namespace sotto::study::internal {
namespace {

/// The products of blocks, without contents.
class GridBlocks final : public Program {
 public:
  GridBlocks(const ProgramNode& node, const GridProductOptions& options,
             const std::vector<ProductSize>& products, std::size_t blocks) {
    std::size_t most = 0;
    for (std::size_t b = 0; b < blocks; ++b) {
      for (const ProductSize& product : products) {
        GridProductOptions one = options;
        one.inner = product.inputs;
        one.columns = product.outputs;
        made_.push_back(std::make_unique<GridProduct>(node, one));
        for (const MatrixBlock& block :
             {made_.back()->input(), made_.back()->weight(), made_.back()->output()}) {
          most = std::max(most, block.size());
        }
      }
    }
    room_.resize(most);
    for (const auto& product : made_) {
      product->list_forward(of(product->input()), of(product->weight()), of(product->output()),
                            stages_);
    }
    for (auto product = made_.rbegin(); product != made_.rend(); ++product) {
      (*product)->list_backward(of((*product)->input()), of((*product)->weight()),
                                of((*product)->output()), of((*product)->input()),
                                of((*product)->weight()), stages_);
    }
  }
  std::span<const ProgramStage> stages() const override { return stages_; }

 private:
  std::span<float> of(const MatrixBlock& block) { return std::span(room_).first(block.size()); }

  std::vector<std::unique_ptr<GridProduct>> made_;
  std::vector<float> room_;
  std::vector<ProgramStage> stages_;
};

/// The class of which most floats are in products, of those that repeat if any does.
const BlockClass& most_products(const ModelShape& model) {
  const BlockClass* most = nullptr;
  const auto rank_of = [](const BlockClass& one) {
    return std::pair(one.blocks > 1, one.blocks * one.parameters);
  };
  for (const BlockClass& one : model.classes) {
    if (!one.products.empty() && (most == nullptr || rank_of(one) > rank_of(*most))) {
      most = &one;
    }
  }
  if (most == nullptr) {
    throw Error("its model has no blocks of products; an mlp or a transformer has");
  }
  return *most;
}

/// A grid of d planes of q × q, or a cube.
struct Cut {
  int side = 1;
  int depth = 1;
  GridForm form = GridForm::planes;
};

std::vector<Cut> cuts_of(int nodes) {
  std::vector<Cut> cuts;
  for (int side = 2; side * side <= nodes; ++side) {
    if (nodes % (side * side) != 0) {
      continue;
    }
    const int depth = nodes / (side * side);
    cuts.push_back({side, depth, GridForm::planes});
    if (depth == side) {
      cuts.push_back({side, depth, GridForm::cube});
    }
  }
  return cuts;
}

StrategyWay way_of(const Cut& cut, const ModelShape& model, const BlockClass& cut_class, int nodes,
                   const std::string& compressor) {
  const bool cube = cut.form == GridForm::cube;
  const std::string grid = fmt::format("depth={},row={},column={}", cut.depth, cut.side, cut.side);
  const GridProductOptions options = {.rows = model.rows() * static_cast<std::size_t>(nodes),
                                      .form = cut.form,
                                      .depth = "depth",
                                      .compressor = compressor,
                                      .gradient_compressor = compressor,
                                      .exchanges_only = true};
  double weights = 0;  // floats of a block's products
  double rooms = 0;    // floats of their rows, at all nodes
  for (const ProductSize& product : cut_class.products) {
    weights += static_cast<double>(product.inputs * product.outputs);
    rooms += static_cast<double>(options.rows * (product.inputs + product.outputs));
  }
  const auto all = static_cast<std::size_t>(static_cast<double>(cut_class.blocks) * weights);
  const std::size_t rest = model.parameters - all;
  const double held = static_cast<double>(all) / (cube ? nodes : cut.side * cut.side);
  return {.text = cube ? grid + " (cube)" : grid,
          .mixed = {.elements = rest},
          .program = ProgramPart{.grid = grid,
                                 .build =
                                     [options, products = cut_class.products](
                                         const ProgramNode& node, std::size_t blocks) {
                                       return std::make_unique<GridBlocks>(node, options, products,
                                                                           blocks);
                                     },
                                 .blocks = cut_class.blocks,
                                 .elements = static_cast<std::size_t>(
                                     4 * (rooms + weights * cut.depth) * (cube ? cut.side : 1))},
          .memory_floats = held_floats(model, rest) + static_cast<double>(2 + model.state) * held +
                           static_cast<double>(model.activations) +
                           (cube ? cut.side : 1) * (rooms + weights) / nodes};
}

std::vector<StrategyWay> grid_ways(const ModelShape& model, int nodes,
                                   const std::string& compressor) {
  const BlockClass& cut_class = most_products(model);
  const auto cuts = cuts_of(nodes);
  if (cuts.empty()) {
    throw Error(
        fmt::format("{} nodes are no square, and no planes of squares of 4 nodes or more", nodes));
  }
  std::vector<StrategyWay> all;
  for (const Cut& cut : cuts) {
    all.push_back(way_of(cut, model, cut_class, nodes, compressor));
  }
  return all;
}

}  // namespace

constinit const Strategy kGridStrategy = {
    .name = "grid",
    .what = "products of the repeated blocks are cut over a grid of nodes",
    .runs_with = "sotto::GridProduct (groups/programs/grid_product.h)",
    .ways = grid_ways};

}  // namespace sotto::study::internal
