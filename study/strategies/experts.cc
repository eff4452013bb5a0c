// Experts that lie at different nodes; all else of the model is averaged. Experts that every node
// has are data parallelism.
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/groups/programs/expert_exchange.h>
#include <sotto/study/strategies/internal/all_strategies.h>

namespace sotto::study::internal {
namespace {

/// Layers of experts that give their tokens back, chosen at random.
class ExpertLayers final : public Program {
 public:
  ExpertLayers(const ProgramNode& node, const ExpertOptions& options, std::size_t layers)
      : rank_(node.rank()),
        rows_(options.tokens * options.width),
        scores_(options.tokens * options.experts),
        score_gradient_(scores_.size()) {
    for (std::size_t l = 0; l < layers; ++l) {
      layers_.push_back(std::make_unique<ExpertExchange>(node.everyone(), options));
      ExpertExchange& layer = *layers_.back();
      list(fmt::format("tokens {}", l), &layer.dispatching(), [this, l] { return send(l); });
      list(fmt::format("experts {}", l), &layer.combining(), [&layer] {
        layer.arrive();
        layer.combine();
        return Status();
      });
    }
    for (std::size_t l = layers; l-- > 0;) {
      ExpertExchange& layer = *layers_[l];
      list(fmt::format("loss {}", l), &layer.dispatching_gradient(), [this, &layer] {
        if (Status status = layer.finish(rows_); !status.ok()) {
          return status;
        }
        layer.dispatch_gradient(rows_);
        return Status();
      });
      list(fmt::format("learn {}", l), &layer.combining_gradient(), [&layer] {
        const Status status = layer.arrive_gradient();
        layer.combine_gradient();
        return status;
      });
      list(fmt::format("end {}", l), nullptr,
           [this, &layer] { return layer.finish_gradient(rows_, score_gradient_); });
    }
  }
  std::span<const ProgramStage> stages() const override { return stages_; }

 private:
  template <typename Compute>
  void list(std::string name, Collective* collective, Compute compute) {
    stages_.push_back(
        {std::move(name),
         [compute = std::move(compute)](const RoundInput&) -> Status { return compute(); },
         collective, 0});
  }
  Status send(std::size_t layer) {
    RandomStream random({.seed = layer, .rank = rank_});
    for (float& score : scores_) {
      score = static_cast<float>(random.normal());
    }
    return layers_[layer]->dispatch(rows_, scores_);
  }

  Rank rank_;
  std::vector<float> rows_;
  std::vector<float> scores_;
  std::vector<float> score_gradient_;
  std::vector<std::unique_ptr<ExpertExchange>> layers_;
  std::vector<ProgramStage> stages_;
};

const BlockClass& with_experts(const ModelShape& model) {
  for (const BlockClass& one : model.classes) {
    if (one.experts > 1 && one.width() > 0) {
      return one;
    }
  }
  throw Error("its model has no experts; transformer:LAYERS,WIDTH,HEADS,experts=E has");
}

std::vector<StrategyWay> expert_ways(const ModelShape& model, int nodes,
                                     const std::string& compressor) {
  const BlockClass& layer = with_experts(model);
  if (nodes < 2 || layer.experts % static_cast<std::size_t>(nodes) != 0) {
    throw Error(
        fmt::format("{} experts cannot lie at {} nodes, as many at each", layer.experts, nodes));
  }
  const ExpertOptions options = {.experts = layer.experts,
                                 .width = layer.width(),
                                 .tokens = model.rows(),
                                 .compressor = compressor,
                                 .gradient_compressor = compressor};
  const std::size_t all = layer.blocks * layer.expert_parameters;
  const std::size_t own = all / static_cast<std::size_t>(nodes);
  const double rows = 12 * static_cast<double>(model.rows() * layer.width());
  return {{.text = fmt::format("expert={}", nodes),
           .mixed = {.elements = model.parameters - all},
           .program = ProgramPart{.grid = fmt::format("expert={}", nodes),
                                  .build =
                                      [options](const ProgramNode& node, std::size_t blocks) {
                                        return std::make_unique<ExpertLayers>(node, options,
                                                                              blocks);
                                      },
                                  .blocks = layer.blocks,
                                  .elements = static_cast<std::size_t>(rows) *
                                              static_cast<std::size_t>(nodes)},
           .memory_floats = held_floats(model, model.parameters - all + own) +
                            static_cast<double>(model.activations) +
                            static_cast<double>(layer.blocks) * rows}};
}

}  // namespace

constinit const Strategy kExpertStrategy = {
    .name = "experts",
    .what = "each node has some of the experts, and tokens travel to theirs and back",
    .runs_with =
        "sotto::ExpertExchange (groups/programs/expert_exchange.h), sotto::torch::ExpertLink",
    .ways = expert_ways};

}  // namespace sotto::study::internal
