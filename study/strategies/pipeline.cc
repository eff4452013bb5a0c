// A pipeline of stages, or several of them whose like stages are averaged.
#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/groups/programs/pipeline.h>
#include <sotto/groups/vector_collective.h>
#include <sotto/study/strategies/internal/all_strategies.h>

namespace sotto::study::internal {
namespace {

/// Micro-batches of a step for each stage, as GPipe has them at least.
constexpr int kBatchesPerStage = 4;
/// Stages behind which a pipeline is idle for most of a step.
constexpr int kMostStages = 16;

/// A stage of zeros.
class EmptyStage final : public PipelineStage {
 public:
  explicit EmptyStage(std::size_t rows, int batches)
      : rows_(rows), keys_(rows * static_cast<std::size_t>(batches)) {
    std::iota(keys_.begin(), keys_.end(), std::uint64_t{0});
  }
  Status begin(const RoundInput& /*input*/) override { return {}; }
  std::span<const std::uint64_t> keys(int batch) override {
    return std::span(keys_).subspan(static_cast<std::size_t>(batch) * rows_, rows_);
  }
  Status forward(int /*batch*/, std::span<const float> /*in*/, std::span<float> out) override {
    std::ranges::fill(out, 0.0F);
    return {};
  }
  Status backward(int /*batch*/, std::span<const float> /*in*/, std::span<const float> /*dout*/,
                  std::span<float> din) override {
    std::ranges::fill(din, 0.0F);
    return {};
  }
  std::span<const float> gradient() const override { return {}; }

 private:
  std::size_t rows_;
  std::vector<std::uint64_t> keys_;
};

/// Where a model is cut.
struct Stages {
  std::vector<std::size_t> parameters;  ///< floats of each stage
  std::vector<std::size_t> widths;      ///< elements of a row between a stage and the next
};

/// A pipeline, and behind it the mean of each stage over the pipelines.
class Pipelines final : public Program {
 public:
  Pipelines(const ProgramNode& node, const PipelineOptions& options, const Stages& cut)
      : pipeline_(node, options, std::make_unique<EmptyStage>(options.rows, options.batches)),
        stages_(pipeline_.stages().begin(), pipeline_.stages().end()) {
    const std::size_t own = cut.parameters[static_cast<std::size_t>(pipeline_.position())];
    const GroupMember others = node.member("data");
    if (others.group.size() == 1) {
      return;
    }
    gradient_.resize(own);
    const std::size_t most = std::ranges::max(cut.parameters);
    sum_ = make_all_reduce(
        others, {.elements = own,
                 .bound = {.elements = most, .block = longest_chunk(most, others.group.size())}});
    stages_.push_back({"mean of the stage",
                       [this](const RoundInput&) {
                         sum_->begin(gradient_);
                         return Status();
                       },
                       sum_.get(), 0});
  }
  std::span<const ProgramStage> stages() const override { return stages_; }

 private:
  Pipeline pipeline_;
  std::vector<float> gradient_;
  std::unique_ptr<VectorCollective> sum_;
  std::vector<ProgramStage> stages_;
};

/// The contiguous stages of which the largest has the fewest floats. What has no number goes with
/// the block beside it.
Stages cut_into(const ModelShape& model, std::size_t stages) {
  std::vector<std::size_t> sizes;   // of blocks that can be parted
  std::vector<std::size_t> widths;  // in front of each
  for (const std::size_t kind : model.order) {
    const BlockClass& one = model.classes[kind];
    if (one.width() == 0) {
      sizes.empty() ? sizes.push_back(one.parameters) : void(sizes.back() += one.parameters);
      widths.resize(sizes.size());
    } else if (sizes.size() == 1 && widths.front() == 0) {
      sizes.front() += one.parameters;
      widths.front() = one.width();
    } else {
      sizes.push_back(one.parameters);
      widths.push_back(one.width());
    }
  }
  if (sizes.size() < stages) {
    throw Error(fmt::format("its model has {} blocks in a row, too few for {} stages",
                            widths.empty() || widths.front() == 0 ? 0 : sizes.size(), stages));
  }
  // least[s][b]: the largest stage when the first b blocks are s stages.
  const std::size_t blocks = sizes.size();
  std::vector<std::size_t> sums(blocks + 1);
  std::partial_sum(sizes.begin(), sizes.end(), sums.begin() + 1);
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  std::vector<std::vector<std::size_t>> least(stages + 1,
                                              std::vector<std::size_t>(blocks + 1, kNone));
  auto from = least;
  least[0][0] = 0;
  for (std::size_t s = 1; s <= stages; ++s) {
    for (std::size_t b = s; b <= blocks; ++b) {
      for (std::size_t a = s - 1; a < b; ++a) {
        const std::size_t largest = std::max(least[s - 1][a], sums[b] - sums[a]);
        if (least[s - 1][a] != kNone && largest < least[s][b]) {
          least[s][b] = largest;
          from[s][b] = a;
        }
      }
    }
  }
  Stages cut;
  for (std::size_t s = stages, b = blocks; s > 0; b = from[s][b], --s) {
    cut.parameters.insert(cut.parameters.begin(), sums[b] - sums[from[s][b]]);
    if (s > 1) {
      cut.widths.insert(cut.widths.begin(), widths[from[s][b]]);
    }
  }
  return cut;
}

/// The most micro-batches, up to kBatchesPerStage a stage, that divide the examples.
int batches_of(std::size_t examples, int stages) {
  int batches = static_cast<int>(
      std::min<std::size_t>(examples, static_cast<std::size_t>(kBatchesPerStage * stages)));
  while (examples % static_cast<std::size_t>(batches) != 0) {
    --batches;
  }
  return batches;
}

StrategyWay way_of(const ModelShape& model, int nodes, int stages, const std::string& compressor) {
  const Stages cut = cut_into(model, static_cast<std::size_t>(stages));
  // A pipeline has the examples of as many nodes as it has stages.
  const std::size_t examples = model.examples * static_cast<std::size_t>(stages);
  const int batches = batches_of(examples, stages);
  const std::size_t rows = examples / static_cast<std::size_t>(batches) * model.positions;
  const std::size_t most = std::ranges::max(cut.parameters);
  const std::string grid = fmt::format("data={},stage={}", nodes / stages, stages);
  const PipelineOptions options = {.batches = batches,
                                   .rows = rows,
                                   .widths = cut.widths,
                                   .keys = rows * static_cast<std::size_t>(batches),
                                   .compressor = compressor,
                                   .first = compressor,
                                   .gradient_compressor = compressor,
                                   .forward_flops = 1.0 / 3 / batches,
                                   .backward_flops = 2.0 / 3 / batches};
  const std::size_t boundary =
      rows * static_cast<std::size_t>(batches) * std::ranges::max(cut.widths);
  return {.text = fmt::format("{}, {} micro-batches", grid, batches),
          .mixed = {.elements = 0},
          .program = ProgramPart{.grid = grid,
                                 .build =
                                     [options, cut](const ProgramNode& node, std::size_t) {
                                       return std::make_unique<Pipelines>(node, options, cut);
                                     },
                                 .blocks = 1,
                                 .paced = true,
                                 .elements = static_cast<std::size_t>(nodes) *
                                             ((stages < nodes ? 3 * most : 0) + 4 * boundary)},
          .memory_floats = held_floats(model, most) + static_cast<double>(model.activations) +
                           2 * static_cast<double>(boundary)};
}

std::vector<StrategyWay> pipeline_ways(const ModelShape& model, int nodes,
                                       const std::string& compressor) {
  std::vector<StrategyWay> all;
  std::string why = fmt::format("{} nodes cannot be dealt out to stages", nodes);
  for (int stages = 2; stages <= std::min(nodes, kMostStages); ++stages) {
    if (nodes % stages != 0) {
      continue;
    }
    try {
      all.push_back(way_of(model, nodes, stages, compressor));
    } catch (const Error& error) {
      why = error.what();
      break;
    }
  }
  if (all.empty()) {
    throw Error(why);
  }
  return all;
}

}  // namespace

constinit const Strategy kPipelineStrategy = {
    .name = "pipeline",
    .what = "each node has some of the layers, and rows travel through all of them",
    .runs_with = "sotto::Pipeline (groups/programs/pipeline.h)",
    .ways = pipeline_ways};

}  // namespace sotto::study::internal
