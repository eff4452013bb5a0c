#include <sotto/trainers/tasks/quadratic.h>

#include <algorithm>

#include <sotto/base/check.h>

namespace sotto {

double QuadraticProblem::local_objective(Rank rank, std::span<const float> x) const {
  const Node& node = nodes[static_cast<std::size_t>(rank)];
  check(x.size() == node.h.size(), "local_objective: a point of the problem's dimension");
  double sum = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double away = static_cast<double>(x[k]) - node.c[k];
    sum += node.h[k] * away * away;
  }
  return sum / 2;
}

double QuadraticProblem::objective(std::span<const float> x) const {
  double sum = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    sum += local_objective(static_cast<Rank>(i), x);
  }
  return sum / static_cast<double>(nodes.size());
}

QuadraticTask::QuadraticTask(std::shared_ptr<const QuadraticProblem> problem, Rank rank)
    : problem_(std::move(problem)), rank_(rank) {
  check(rank_ >= 0 && static_cast<std::size_t>(rank_) < problem_->nodes.size(),
        "the rank of a node of the problem");
  append_block(layout_, "x", {problem_->start.size()});
}

void QuadraticTask::initialize(std::span<float> parameters, std::uint64_t /*seed*/) const {
  check(parameters.size() == dimension(), "initialize: parameters of the task's dimension");
  std::ranges::copy(problem_->start, parameters.begin());
}

double QuadraticTask::loss_and_gradient(Round /*round*/, std::span<const float> parameters,
                                        std::span<float> gradient) {
  check(parameters.size() == dimension() && gradient.size() == dimension(),
        "loss_and_gradient: parameters and gradient of the task's dimension");
  const auto& node = problem_->nodes[static_cast<std::size_t>(rank_)];
  for (std::size_t k = 0; k < gradient.size(); ++k) {
    gradient[k] = static_cast<float>(node.h[k] * (static_cast<double>(parameters[k]) - node.c[k]));
  }
  return problem_->local_objective(rank_, parameters);
}

Evaluation QuadraticTask::evaluate(std::span<const float> parameters) {
  check(parameters.size() == dimension(), "evaluate: parameters of the task's dimension");
  return {.loss = problem_->objective(parameters)};
}

}  // namespace sotto
