// Quadratics with a known optimum: for checking an algorithm against one's own arithmetic.
//
//   f_i(x) = ½ Σ_k h_ik (x_k − c_ik)²,   f(x) = (1/n) Σ_i f_i(x),   x*_k = Σ_i h_ik c_ik / Σ_i h_ik
//
// Gradients are exact, without noise: formed in double and rounded once. File format (JSON):
//   {"start": [d numbers], "nodes": [{"h": [d numbers], "c": [d numbers]}, …]}
// Thread safety and ownership: a problem is an immutable value that nodes share; a task belongs to
// one node.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include <sotto/trainers/tasks/task.h>

namespace sotto {

/// The functions of all nodes.
struct QuadraticProblem {
  /// f_i(x) = ½ Σ_k h_k (x_k − c_k)².
  struct Node {
    std::vector<double> h;  ///< curvatures
    std::vector<double> c;  ///< the node's own optimum
  };
  std::vector<float> start;  ///< first model of every node
  std::vector<Node> nodes;

  /// f_i(x)
  double local_objective(Rank rank, std::span<const float> x) const;
  /// f(x)
  double objective(std::span<const float> x) const;
};

/// Reads a problem. Throws Error with the file and the place for what is no JSON, a missing or
/// empty list, lists of different lengths, and a number that is not finite.
std::shared_ptr<const QuadraticProblem> load_quadratic(const std::filesystem::path& file);

/// One node's quadratic. Every round takes the exact gradient of f_i; evaluate gives f and no
/// accuracy; an epoch is one round; the seed is not used.
class QuadraticTask final : public Task {
 public:
  /// Requires 0 ≤ rank < problem->nodes.size().
  QuadraticTask(std::shared_ptr<const QuadraticProblem> problem, Rank rank);

  const ParameterLayout& layout() const override { return layout_; }
  void initialize(std::span<float> parameters, std::uint64_t seed) const override;
  Round rounds_per_epoch() const override { return 1; }
  double loss_and_gradient(Round round, std::span<const float> parameters,
                           std::span<float> gradient) override;
  Evaluation evaluate(std::span<const float> parameters) override;

 private:
  std::shared_ptr<const QuadraticProblem> problem_;
  Rank rank_;
  ParameterLayout layout_;
};

}  // namespace sotto
