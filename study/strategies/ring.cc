// Attention over sequences that are cut over all nodes, one sequence after the other; all weights
// are averaged besides.
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/groups/programs/ring_attention.h>
#include <sotto/study/strategies/internal/all_strategies.h>

namespace sotto::study::internal {
namespace {

/// Layers of attention, without contents.
class AttentionLayers final : public Program {
 public:
  AttentionLayers(const ProgramNode& node, const RingAttentionOptions& options,
                  std::size_t layers) {
    for (std::size_t l = 0; l < layers; ++l) {
      layers_.push_back(std::make_unique<RingAttention>(node, options));
    }
    std::size_t rows = 0;
    for (const Chunk& piece : layers_.front()->pieces()) {
      rows += piece.size;
    }
    rows_.resize(rows * options.heads * options.width);
    const AttentionInput in = {.q = rows_, .k = rows_, .v = rows_};
    for (const auto& layer : layers_) {
      layer->list_forward(in, rows_, stages_);
    }
    for (std::size_t l = layers; l-- > 0;) {
      layers_[l]->list_backward(in, rows_, rows_, {.q = rows_, .k = rows_, .v = rows_}, stages_);
    }
  }
  std::span<const ProgramStage> stages() const override { return stages_; }

 private:
  std::vector<std::unique_ptr<RingAttention>> layers_;
  std::vector<float> rows_;
  std::vector<ProgramStage> stages_;
};

const BlockClass& with_attention(const ModelShape& model) {
  for (const BlockClass& one : model.classes) {
    if (one.attention && one.width() > 0) {
      return one;
    }
  }
  throw Error("its model has no attention; a transformer has");
}

std::vector<StrategyWay> ring_ways(const ModelShape& model, int nodes,
                                   const std::string& compressor) {
  const BlockClass& layer = with_attention(model);
  const auto members = static_cast<std::size_t>(nodes);
  if (nodes < 2 || model.positions < 2 * members) {
    throw Error(
        fmt::format("sequences of {} positions cannot be cut into {} pieces, two for each "
                    "node",
                    model.positions, 2 * nodes));
  }
  const RingAttentionOptions options = {.positions = model.positions,
                                        .heads = 1,
                                        .width = layer.width(),
                                        .compressor = compressor,
                                        .exchanges_only = true};
  const std::size_t room = 12 * model.positions * layer.width();
  return {{.text = fmt::format("ring={}", nodes),
           .mixed = {.elements = model.parameters},
           .program = ProgramPart{.grid = fmt::format("ring={}", nodes),
                                  .build =
                                      [options](const ProgramNode& node, std::size_t blocks) {
                                        return std::make_unique<AttentionLayers>(node, options,
                                                                                 blocks);
                                      },
                                  // All nodes' sequences, each in all layers.
                                  .blocks = layer.blocks * model.examples * members,
                                  .elements = room},
           .memory_floats = held_floats(model, model.parameters) +
                            static_cast<double>(model.activations) +
                            static_cast<double>(room / members)}};
}

}  // namespace

constinit const Strategy kRingStrategy = {
    .name = "ring",
    .what = "each node has a part of every sequence, and keys and values go round",
    .runs_with = "sotto::RingAttention (groups/programs/ring_attention.h)",
    .ways = ring_ways};

}  // namespace sotto::study::internal
