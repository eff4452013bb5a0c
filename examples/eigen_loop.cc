// A training loop in Eigen, here logistic regression, on four nodes: parameters and gradient are
// flat vectors of Eigen's, and lines (1) and (2) are all that is sotto's. The nodes are threads
// here.
#include <cstddef>
#include <cstdio>
#include <vector>

#include <Eigen/Core>

#include <sotto/base/philox.h>
#include <sotto/base/start_threads.h>
#include <sotto/trainers/optimizer.h>

namespace {

constexpr int kFeatures = 10;
constexpr int kExamples = 400;

/// A node's own examples: the class of a is 1 where its sum is positive.
Eigen::MatrixXf make_examples(sotto::Rank rank) {
  sotto::RandomStream random({.seed = 1, .rank = rank});
  Eigen::MatrixXf examples(kFeatures, kExamples);
  for (float& value : examples.reshaped()) {
    value = static_cast<float>(random.normal());
  }
  return examples;
}

Eigen::ArrayXf classes_of(const Eigen::MatrixXf& examples) {
  return (examples.colwise().sum().array() > 0).cast<float>();
}

/// Trains one node; true when the model tells nearly all examples of another node apart.
bool train(const sotto::OptimizerOptions& options) {
  const Eigen::MatrixXf examples = make_examples(options.rank);
  const Eigen::ArrayXf classes = classes_of(examples);
  Eigen::VectorXf w = Eigen::VectorXf::Zero(kFeatures);
  sotto::Optimizer optimizer(options, {w.data(), kFeatures});  // (1)
  for (int round = 0; round < 200; ++round) {
    const Eigen::ArrayXf guess = 1 / (1 + (-(examples.transpose() * w).array()).exp());
    const Eigen::VectorXf gradient = examples * (guess - classes).matrix() / kExamples;
    if (const auto status = optimizer.step({gradient.data(), kFeatures}); !status.ok()) {  // (2)
      std::fprintf(stderr, "%s\n", status.message().c_str());
      return false;
    }
  }
  const Eigen::MatrixXf others = make_examples(options.nodes);
  const Eigen::ArrayXf guess = ((others.transpose() * w).array() > 0).cast<float>();
  const float right = (guess == classes_of(others)).cast<float>().mean();
  std::printf("node %d: %.1f %% of unseen examples right\n", options.rank,
              100 * static_cast<double>(right));
  return optimizer.finish().ok() && right > 0.97F;
}

}  // namespace

int main() {
  sotto::OptimizerOptions options;
  options.algorithm = "choco";
  options.compressor = "topk:0.3";
  options.step_rule.learning_rate = 2;
  options.transport = "inproc";
  options.nodes = 4;
  options.store = sotto::make_memory_store();
  std::vector<char> solved(4);
  sotto::run_side_by_side(solved.size(), "nodes", [&](std::size_t node) {
    sotto::OptimizerOptions own = options;
    own.rank = static_cast<sotto::Rank>(node);
    solved[node] = train(own);
  });
  return solved == std::vector<char>(4, true) ? 0 : 1;
}
