#include "staged_training.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <sotto/groups/programs/pipeline.h>
#include <sotto/sim/simulator.h>
#include <sotto/trainers/data/sampler.h>

#include "staged_model.h"

namespace sotto::bench {
namespace {

constexpr std::size_t kBatch = 128;
constexpr int kMicroBatches = 4;
constexpr std::size_t kRows = kBatch / kMicroBatches;
constexpr Round kSteps = 10 * kExamples / kBatch;
constexpr double kFlopsPerSecond = 10e9;

/// One node's layers as a stage of the pipeline.
class Stage final : public PipelineStage {
 public:
  Stage(std::span<const float> parameters, int at, const Way& way, const Dataset& data,
        std::uint64_t seed)
      : layers_(parameters, at, way.stages),
        first_(at == 0),
        last_(at + 1 == way.stages),
        keyed_(way.keyed),
        examples_(&data.train()),
        sampler_(everything(), kBatch, seed, 0),
        gradient_(parameters.size()),
        kept_(kMicroBatches) {}

  Status begin(const RoundInput& in) override {
    round_ = in.round;
    batch_ = sampler_.batch(in.round);
    std::fill(gradient_.begin(), gradient_.end(), 0.0F);
    return {};
  }
  std::span<const std::uint64_t> keys(int batch) override {
    keys_.clear();
    for (const std::uint32_t example : micro_batch(batch)) {
      keys_.push_back(keyed_ ? example : round_ * kExamples + example);
    }
    return keys_;
  }
  Status forward(int batch, std::span<const float> in, std::span<float> out) override {
    auto& rows = kept_[static_cast<std::size_t>(batch)];
    rows = layers_.forward(first_ ? features(*examples_, micro_batch(batch)) : matrix(in));
    std::copy_n(rows.back().data(), out.size(), out.begin());
    return {};
  }
  Status backward(int batch, std::span<const float> /*in*/, std::span<const float> dout,
                  std::span<float> din) override {
    const auto& rows = kept_[static_cast<std::size_t>(batch)];
    Matrix dy;
    if (last_) {
      std::size_t right = 0;
      dy = rows.back();
      cross_entropy(dy, *examples_, micro_batch(batch), right);
      dy /= static_cast<float>(kBatch);
    } else {
      dy = matrix(dout);
    }
    const Matrix dx = layers_.backward(rows, std::move(dy), gradient_);
    std::copy_n(dx.data(), din.size(), din.begin());
    return {};
  }
  std::span<const float> gradient() const override { return gradient_; }
  double flops() const { return layers_.flops(kRows); }

 private:
  static std::vector<std::uint32_t> everything() {
    std::vector<std::uint32_t> all(kExamples);
    std::iota(all.begin(), all.end(), 0U);
    return all;
  }
  static Matrix matrix(std::span<const float> rows) {
    return Rows(rows.data(), kRows, static_cast<Eigen::Index>(rows.size() / kRows));
  }
  std::span<const std::uint32_t> micro_batch(int batch) const {
    return batch_.subspan(static_cast<std::size_t>(batch) * kRows, kRows);
  }

  Layers layers_;
  bool first_;
  bool last_;
  bool keyed_;
  const Examples* examples_;
  Sampler sampler_;
  Round round_ = 0;
  std::span<const std::uint32_t> batch_;
  std::vector<std::uint64_t> keys_;
  std::vector<float> gradient_;
  std::vector<std::vector<Matrix>> kept_;
};

/// A node that runs stage `at` of the pipeline on its parameters; `spec` gets its speed.
std::unique_ptr<Algorithm> make_node(const Way& way, int at, std::span<float> parameters,
                                     const Dataset& data, std::uint64_t seed, NodeSpec& spec) {
  const auto build = [&](const ProgramNode& node) {
    auto stage = std::make_unique<Stage>(parameters, at, way, data, seed);
    const double flops = stage->flops();
    spec = {.compute = {.seconds = at == 0 ? flops / kFlopsPerSecond : 0},
            .flops_per_second = kFlopsPerSecond};
    return std::make_unique<Pipeline>(
        node,
        PipelineOptions{.batches = kMicroBatches,
                        .rows = kRows,
                        .widths = {kHidden},
                        .keys = way.keyed ? kExamples : kSteps * kBatch,
                        .compressor = way.compressor,
                        .first = way.first,
                        .gradient_compressor = way.back,
                        .memory = way.memory,
                        .forward_flops = flops,
                        .backward_flops = 2 * flops},
        std::move(stage));
  };
  return std::make_unique<ProgramGradient>(
      ProgramSetup{.rank = at,
                   .nodes = way.stages,
                   .grid = "data=1,stage=" + std::to_string(way.stages),
                   .parameters = parameters,
                   .seed = seed},
      build, GroupAlgorithm{.axis = "data", .step_rule = {.learning_rate = 0.05, .momentum = 0.9}});
}

}  // namespace

StagedOutcome train_stages(const Way& way, const Dataset& data, std::uint64_t seed,
                           double megabits) {
  auto models = initial_stages(way.stages, seed);
  std::vector<std::unique_ptr<Algorithm>> nodes;
  SimulatorOptions options;
  options.rounds = kSteps;
  options.nodes.assign(models.size(), {});
  for (int at = 0; at < way.stages; ++at) {
    const auto k = static_cast<std::size_t>(at);
    nodes.push_back(make_node(way, at, models[k], data, seed, options.nodes[k]));
  }
  StagedOutcome outcome;
  SimulatorHooks hooks;
  hooks.trace = [&outcome](const TraceEntry& entry) {
    if (entry.kind == TraceEntry::Kind::sent) {
      (entry.node < entry.peer ? outcome.there : outcome.back) += static_cast<double>(entry.bytes);
    }
  };
  const auto platform = make_star(way.stages, megabits * 1e6 / 8, from_seconds(0.01));
  Simulator simulator(
      platform, options, std::move(nodes),
      [](Rank, Round, std::span<const float>, std::span<float> g) {
        std::fill(g.begin(), g.end(), 0.0F);
      },
      std::move(hooks));
  const SimulationReport report = simulator.run();
  for (const NodeReport& node : report.nodes) {
    if (!node.status.ok()) {
      throw std::runtime_error(node.status.message());
    }
    outcome.seconds = std::max(outcome.seconds, to_seconds(node.end));
  }
  const double elements = static_cast<double>(kSteps * kBatch * kHidden) * (way.stages - 1);
  outcome.bits = 8 * outcome.there / elements;
  outcome.loss = evaluate(models, data.train(), kExamples).loss;
  outcome.accuracy = evaluate(models, data.test(), kTests).accuracy;
  return outcome;
}

}  // namespace sotto::bench
