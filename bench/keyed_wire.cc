// What a model costs that is cut into stages on a slow network, and what it learns, by how the rows
// between the stages are encoded: exactly, in few bits without memory, or as keyed differences.
//
// A network 784-128-128-10 with ReLU is cut in 2 or 3; 4,096 generated digits, 10 passes, 128
// examples a step in 4 micro-batches, SGD with momentum. 10 ms from node to node; 10 GFlop/s a
// node. All numbers are of the simulator: models are those of a real run, times are virtual. Means
// of 3 seeds, but for the time at 100 Mbit/s, which is of the first.
//
// "No memory" gives each visit of an example a key of its own, so that it is a first one each time.
#define EIGEN_DONT_PARALLELIZE
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <Eigen/Core>

#include <sotto/groups/pipeline.h>
#include <sotto/sim/simulator.h>
#include <sotto/trainers/data/digits.h>
#include <sotto/trainers/data/loaders.h>
#include <sotto/trainers/data/sampler.h>

#include "command_line.h"

namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Rows = Eigen::Map<const Matrix>;

constexpr std::size_t kExamples = 4096;
constexpr std::size_t kBatch = 128;
constexpr std::size_t kTests = 2000;
constexpr int kMicroBatches = 4;
constexpr std::size_t kRows = kBatch / kMicroBatches;
constexpr sotto::Round kSteps = 10 * kExamples / kBatch;
constexpr std::size_t kHidden = 128;
constexpr std::size_t kClasses = 10;
constexpr int kSeeds = 3;
constexpr double kFlopsPerSecond = 10e9;

/// A way to send rows.
struct Way {
  const char* name;
  const char* compressor;
  const char* first;
  const char* back;
  bool keyed;  ///< examples have their numbers for keys
  int stages;
};

/// Sizes in front of, between and behind the layers of one stage.
std::vector<std::size_t> sizes_of(int stage, int stages) {
  const std::vector<std::size_t> all = {28UL * 28, kHidden, kHidden, kClasses};
  if (stages == 3) {
    return {all[static_cast<std::size_t>(stage)], all[static_cast<std::size_t>(stage) + 1]};
  }
  return stage == 0 ? std::vector{all[0], all[1]} : std::vector{all[1], all[2], all[3]};
}

std::size_t parameters_of(const std::vector<std::size_t>& sizes) {
  std::size_t count = 0;
  for (std::size_t l = 0; l + 1 < sizes.size(); ++l) {
    count += (sizes[l] + 1) * sizes[l + 1];
  }
  return count;
}

/// Layers y = x W + b, with ReLU but for the last one of the model.
class Layers {
 public:
  Layers(std::span<const float> parameters, std::vector<std::size_t> sizes, bool last)
      : w_(parameters), sizes_(std::move(sizes)), last_(last) {}

  /// The rows in front of each layer and behind the last one.
  std::vector<Matrix> forward(Matrix x) const {
    std::vector<Matrix> rows = {std::move(x)};
    std::size_t at = 0;
    for (std::size_t l = 0; l + 1 < sizes_.size(); ++l) {
      Matrix y = rows.back() * weight(at, l);
      y.rowwise() += bias(at, l).row(0);
      if (!last_ || l + 2 < sizes_.size()) {
        y = y.cwiseMax(0.0F);
      }
      rows.push_back(std::move(y));
      at += (sizes_[l] + 1) * sizes_[l + 1];
    }
    return rows;
  }
  /// Adds to the gradient, given that of what is behind the layers; returns that of the rows in
  /// front of them.
  Matrix backward(const std::vector<Matrix>& rows, Matrix dy, std::span<float> gradient) const {
    std::size_t end = w_.size();
    for (std::size_t l = sizes_.size() - 1; l-- > 0;) {
      const std::size_t at = end - (sizes_[l] + 1) * sizes_[l + 1];
      if (!last_ || l + 2 < sizes_.size()) {
        dy = (rows[l + 1].array() > 0).select(dy, 0);
      }
      Eigen::Map<Matrix> dw(&gradient[at], index(sizes_[l]), index(sizes_[l + 1]));
      Eigen::Map<Matrix> db(&gradient[at + sizes_[l] * sizes_[l + 1]], 1, index(sizes_[l + 1]));
      dw.noalias() += rows[l].transpose() * dy;
      db += dy.colwise().sum();
      dy = dy * weight(at, l).transpose();
      end = at;
    }
    return dy;
  }
  double flops(std::size_t rows) const {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(w_.size());
  }

 private:
  static Eigen::Index index(std::size_t value) { return static_cast<Eigen::Index>(value); }
  Rows weight(std::size_t at, std::size_t l) const {
    return {&w_[at], index(sizes_[l]), index(sizes_[l + 1])};
  }
  Rows bias(std::size_t at, std::size_t l) const {
    return {&w_[at + sizes_[l] * sizes_[l + 1]], 1, index(sizes_[l + 1])};
  }

  std::span<const float> w_;
  std::vector<std::size_t> sizes_;
  bool last_;
};

/// Features of examples, one a row.
Matrix features(const sotto::Examples& from, std::span<const std::uint32_t> which) {
  Matrix x(static_cast<Eigen::Index>(which.size()), static_cast<Eigen::Index>(from.features()));
  for (std::size_t i = 0; i < which.size(); ++i) {
    from.copy_row(which[i], {x.row(static_cast<Eigen::Index>(i)).data(), from.features()});
  }
  return x;
}

/// Σ −log softmax(scores) of the labels; the scores become its gradient. Counts right answers.
double cross_entropy(Matrix& scores, const sotto::Examples& from,
                     std::span<const std::uint32_t> which, std::size_t& right) {
  double loss = 0;
  for (std::size_t i = 0; i < which.size(); ++i) {
    auto row = scores.row(static_cast<Eigen::Index>(i));
    const auto label = static_cast<Eigen::Index>(from.labels()[which[i]]);
    Eigen::Index best = 0;
    const float most = row.maxCoeff(&best);
    right += best == label ? 1U : 0U;
    row = (row.array() - most).exp();
    row /= row.sum();
    loss -= std::log(std::max(1e-30, static_cast<double>(row(label))));
    row(label) -= 1;
  }
  return loss;
}

/// One node's layers as a stage of the pipeline.
class Stage final : public sotto::PipelineStage {
 public:
  Stage(std::span<const float> parameters, int at, const Way& way, const sotto::Dataset& data,
        std::uint64_t seed)
      : layers_(parameters, sizes_of(at, way.stages), at + 1 == way.stages),
        first_(at == 0),
        last_(at + 1 == way.stages),
        keyed_(way.keyed),
        examples_(&data.train()),
        sampler_(everything(), kBatch, seed, 0),
        gradient_(parameters.size()),
        kept_(kMicroBatches) {}

  sotto::Status begin(const sotto::RoundInput& in) override {
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
  sotto::Status forward(int batch, std::span<const float> in, std::span<float> out) override {
    auto& rows = kept_[static_cast<std::size_t>(batch)];
    rows = layers_.forward(first_ ? features(*examples_, micro_batch(batch)) : matrix(in));
    std::copy_n(rows.back().data(), out.size(), out.begin());
    return {};
  }
  sotto::Status backward(int batch, std::span<const float> /*in*/, std::span<const float> dout,
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
  const sotto::Examples* examples_;
  sotto::Sampler sampler_;
  sotto::Round round_ = 0;
  std::span<const std::uint32_t> batch_;
  std::vector<std::uint64_t> keys_;
  std::vector<float> gradient_;
  std::vector<std::vector<Matrix>> kept_;
};

/// What came of a run.
struct Outcome {
  double there = 0;  ///< bytes over all boundaries
  double back = 0;
  double bits = 0;  ///< of an element on its way there, in the mean
  double loss = 0;
  double accuracy = 0;
  double seconds = 0;
};

std::vector<std::vector<float>> initial(const Way& way, std::uint64_t seed) {
  std::vector<std::vector<float>> models;
  for (int at = 0; at < way.stages; ++at) {
    const auto sizes = sizes_of(at, way.stages);
    auto& w = models.emplace_back(parameters_of(sizes));
    std::size_t begin = 0;
    for (std::size_t l = 0; l + 1 < sizes.size(); ++l) {
      // A layer begins alike however the model is cut.
      sotto::RandomStream random({.seed = seed, .round = sizes[l] * 1000 + sizes[l + 1]});
      const float bound = std::sqrt(6.0F / static_cast<float>(sizes[l]));
      for (std::size_t k = 0; k < sizes[l] * sizes[l + 1]; ++k) {
        w[begin + k] = bound * static_cast<float>(2 * random.uniform() - 1);
      }
      begin += (sizes[l] + 1) * sizes[l + 1];
    }
  }
  return models;
}

void evaluate(const std::vector<std::vector<float>>& models, const sotto::Dataset& data,
              Outcome& outcome) {
  const auto stages = static_cast<int>(models.size());
  for (const sotto::Examples* examples : {&data.train(), &data.test()}) {
    std::vector<std::uint32_t> all(examples == &data.train() ? kExamples : kTests);
    std::iota(all.begin(), all.end(), 0U);
    Matrix rows = features(*examples, all);
    for (int at = 0; at < stages; ++at) {
      const Layers layers(models[static_cast<std::size_t>(at)], sizes_of(at, stages),
                          at + 1 == stages);
      rows = layers.forward(std::move(rows)).back();
    }
    std::size_t right = 0;
    const double loss = cross_entropy(rows, *examples, all, right);
    const auto count = static_cast<double>(all.size());
    (examples == &data.train() ? outcome.loss : outcome.accuracy) =
        examples == &data.train() ? loss / count : static_cast<double>(right) / count;
  }
}

/// A training run in virtual time.
Outcome train(const Way& way, const sotto::Dataset& data, std::uint64_t seed, double megabits) {
  auto models = initial(way, seed);
  std::vector<std::unique_ptr<sotto::Algorithm>> nodes;
  sotto::SimulatorOptions options;
  options.rounds = kSteps;
  options.nodes.assign(models.size(), {});
  std::vector<const sotto::Pipeline*> pipelines;
  for (int at = 0; at < way.stages; ++at) {
    auto& x = models[static_cast<std::size_t>(at)];
    const auto build = [&](const sotto::ProgramNode& node) {
      auto stage = std::make_unique<Stage>(x, at, way, data, seed);
      const double flops = stage->flops();
      options.nodes[static_cast<std::size_t>(at)] = {
          .compute = {.seconds = at == 0 ? flops / kFlopsPerSecond : 0},
          .flops_per_second = kFlopsPerSecond};
      auto pipeline = std::make_unique<sotto::Pipeline>(
          node,
          sotto::PipelineOptions{.batches = kMicroBatches,
                                 .rows = kRows,
                                 .widths = {kHidden},
                                 .keys = way.keyed ? kExamples : kSteps * kBatch,
                                 .compressor = way.compressor,
                                 .first = way.first,
                                 .gradient_compressor = way.back,
                                 .forward_flops = flops,
                                 .backward_flops = 2 * flops},
          std::move(stage));
      pipelines.push_back(pipeline.get());
      return pipeline;
    };
    nodes.push_back(std::make_unique<sotto::ProgramGradient>(
        sotto::ProgramSetup{.rank = at,
                            .nodes = way.stages,
                            .grid = "data=1,stage=" + std::to_string(way.stages),
                            .parameters = x,
                            .seed = seed},
        build,
        sotto::GroupAlgorithm{.axis = "data",
                              .step_rule = {.learning_rate = 0.05, .momentum = 0.9}}));
  }
  Outcome outcome;
  sotto::SimulatorHooks hooks;
  hooks.trace = [&outcome](const sotto::TraceEntry& entry) {
    if (entry.kind == sotto::TraceEntry::Kind::sent) {
      (entry.node < entry.peer ? outcome.there : outcome.back) += static_cast<double>(entry.bytes);
    }
  };
  const auto platform = sotto::make_star(way.stages, megabits * 1e6 / 8, sotto::from_seconds(0.01));
  sotto::Simulator simulator(
      platform, options, std::move(nodes),
      [](sotto::Rank, sotto::Round, std::span<const float>, std::span<float> g) {
        std::fill(g.begin(), g.end(), 0.0F);
      },
      std::move(hooks));
  const sotto::SimulationReport report = simulator.run();
  for (const sotto::NodeReport& node : report.nodes) {
    if (!node.status.ok()) {
      std::fprintf(stderr, "%s\n", node.status.message().c_str());
      std::exit(1);
    }
    outcome.seconds = std::max(outcome.seconds, sotto::to_seconds(node.end));
  }
  const double elements = static_cast<double>(kSteps * kBatch * kHidden) * (way.stages - 1);
  outcome.bits = 8 * outcome.there / elements;
  evaluate(models, data, outcome);
  return outcome;
}

std::shared_ptr<const sotto::Dataset> images(const char* folder, std::uint64_t seed) {
  return folder == nullptr ? sotto::make_digits({.train = kExamples, .test = kTests, .seed = seed})
                           : sotto::load_mnist(folder);
}

void measure(const Way& way, const char* folder) {
  Outcome mean;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const auto data = images(folder, seed);
    const Outcome one = train(way, *data, seed, 20);
    mean.there += one.there / kSeeds;
    mean.back += one.back / kSeeds;
    mean.bits += one.bits / kSeeds;
    mean.loss += one.loss / kSeeds;
    mean.accuracy += one.accuracy / kSeeds;
    mean.seconds += one.seconds / kSeeds;
  }
  const auto data = images(folder, 1);
  const Outcome fast = train(way, *data, 1, 100);
  std::printf("| %d | %-27s | %5.1f | %6.2f | %6.2f | %6.4f | %6.2f %% | %5.1f | %5.1f |\n",
              way.stages, way.name, mean.bits, mean.there / 1e6, mean.back / 1e6, mean.loss,
              100 * mean.accuracy, mean.seconds, fast.seconds);
  std::fflush(stdout);
}

constexpr Way kWays[] = {
    {"exact both ways", "none", "none", "none", true, 2},
    {"exact, back 8 bits", "none", "none", "quant:8", true, 2},
    {"8 bits, no memory", "quant:8", "quant:8", "quant:8", false, 2},
    {"4 bits, no memory", "quant:4", "quant:4", "quant:8", false, 2},
    {"3 bits, no memory", "quant:3", "quant:3", "quant:8", false, 2},
    {"2 bits, no memory", "quant:2", "quant:2", "quant:8", false, 2},
    {"keyed: 8 bits, then 4", "quant:4", "quant:8", "quant:8", true, 2},
    {"keyed: 8 bits, then 3", "quant:3", "quant:8", "quant:8", true, 2},
    {"keyed: 8 bits, then 2", "quant:2", "quant:8", "quant:8", true, 2},
    {"exact both ways", "none", "none", "none", true, 3},
    {"8 bits, no memory", "quant:8", "quant:8", "quant:8", false, 3},
    {"keyed: 8 bits, then 3", "quant:3", "quant:8", "quant:8", true, 3},
    {"keyed: 8 bits, then 2", "quant:2", "quant:8", "quant:8", true, 3},
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What a model cut into stages costs on a slow network, and what it learns",
               "keyed_wire");
  std::string mnist;
  app.add_option("MNIST", mnist, "Folder of MNIST's files; without one, digits that are drawn")
      ->type_name("FOLDER")
      ->check(CLI::ExistingDirectory);
  return sotto::bench::run_main(app, argc, argv, [&] {
    std::printf(
        "| stages | rows there | bits | MB there | MB back | loss | accuracy | s at 20 Mbit/s | "
        "s at 100 |\n| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (const Way& way : kWays) {
      measure(way, mnist.empty() ? nullptr : mnist.c_str());
    }
    return sotto::console::kDone;
  });
}
