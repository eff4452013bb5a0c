#include <sotto/study/strategies/score.h>

#include <algorithm>
#include <cmath>
#include <string>

#include <sotto/study/strategies/model_shape.h>
#include <sotto/trainers/tasks/model.h>
#include <sotto/trainers/tasks/task_registry.h>

namespace sotto::study {
namespace {

/// Forward once, and on the way back for the input and for the weights.
constexpr double kPasses = 3;

bool looked_up(const ParameterBlock& tensor) {
  return tensor.name == "wte.weight" || tensor.name == "wpe.weight";
}

std::optional<double> flops_of_gradient(const TaskOptions& task, const Dataset& data) {
  if (task.model.find("share=") != std::string::npos) {
    return std::nullopt;
  }
  const auto model = make_model(task.model, input_of(data));
  auto flops = flops_of_row(model->layout(), model->positions());
  if (flops) {
    *flops *= static_cast<double>(task.batch * model->positions());
  }
  return flops;
}

}  // namespace

std::optional<double> flops_of_row(const ParameterLayout& layout, std::size_t positions) {
  double products = 0;  // elements of matrices that a row is multiplied with
  for (const ParameterBlock& tensor : layout) {
    if (tensor.shape.size() > 2) {
      return std::nullopt;
    }
    if (tensor.shape.size() == 2 && !looked_up(tensor)) {
      products += static_cast<double>(tensor.size);
    }
  }
  for (const BlockClass& one : classes_of(layout).classes) {
    const double blocks = static_cast<double>(one.blocks);
    if (one.experts > 1) {
      const double all = static_cast<double>(one.expert_matrices);
      products -= blocks * (all - all / static_cast<double>(one.experts));
    }
    if (one.attention) {  // scores with all positions, and the sum of their values
      products += blocks * 2 * static_cast<double>(positions * one.width());
    }
  }
  return kPasses * 2 * products;
}

ScoreTerms score_terms(const TrainPlan& plan) {
  const auto& dataset = plan.tasks->data().dataset;
  if (dataset == nullptr) {
    return {};
  }
  return {.flops_per_round = flops_of_gradient(plan.tasks->options(), *dataset),
          .test_examples = dataset->test().size()};
}

double regulated_score(double flops_per_s, double accuracy, std::size_t test_examples) {
  const double least = 1.0 / static_cast<double>(std::max<std::size_t>(1, test_examples));
  return flops_per_s * std::abs(std::log(std::max(1 - accuracy, least)));
}

}  // namespace sotto::study
