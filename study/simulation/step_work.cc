#include <sotto/study/simulation/step_work.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include <sotto/compress/factors.h>
#include <sotto/compress/low_rank.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/common_hyperparameters.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/step_rule_spec.h>
#include <sotto/optim/wrappers/own_tensors.h>
#include <sotto/study/strategies/score.h>
#include <sotto/topology/properties.h>
#include <sotto/trainers/algorithm_setup.h>
#include <sotto/trainers/placed_model.h>

namespace sotto::study {
namespace {

/// Elements of the matrices that `lowrank` has factors of, times its columns.
double columns_of_matrices(const Compressor& compressor, const ParameterLayout& layout) {
  const auto options = low_rank_options(compressor);
  if (!options) {
    return 0;
  }
  const auto columns = static_cast<std::size_t>(options->rank);
  double elements = 0;
  for (const FactorPiece& piece : factor_pieces(layout, columns)) {
    elements += piece.matrix ? static_cast<double>(piece.size) : 0;
  }
  return elements * options->rank * options->steps;
}

/// The numbers of the tensors that a node steps, which may have some of them to itself.
std::vector<std::size_t> stepped_tensors(const OptimizerOptions& options,
                                         const ParameterLayout& layout) {
  if (!options.placed) {
    std::vector<std::size_t> all(layout.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }
  SteppedTensors stepped = options.placed->stepped(dimension_of(layout), 0);
  stepped.common.insert(stepped.common.end(), stepped.own.begin(), stepped.own.end());
  return tensors_of_parts(layout, stepped.common);
}

/// Multiply-adds of a step of one node. The selectors are judged on the whole model, as they are
/// where the node steps.
double multiply_adds_of(const OptimizerOptions& options, const ParameterLayout& layout) {
  const StepRuleSpec spec = parse_step_rule(options.step_rule.rule);
  const bool multiplies = spec.info->multiply_adds != nullptr ||
                          std::ranges::any_of(spec.selected, [](const SelectedStepRule& one) {
                            return one.info->multiply_adds != nullptr;
                          });
  if (!multiplies) {
    return 0;
  }
  const std::vector<double> by_tensor = multiply_adds_of_step(spec, layout);
  double all = 0;
  for (const std::size_t number : stepped_tensors(options, layout)) {
    all += by_tensor[number];
  }
  return all;
}

}  // namespace

StepWork multiply_adds_of(const TrainPlan& plan, const ParameterLayout& layout, int degree) {
  const OptimizerOptions& options = plan.run.optimizer;
  const PlanFit& facts = algorithm_info(options.algorithm).planned;
  StepWork work = {.step = multiply_adds_of(options, layout)};
  const double products = facts.products + facts.products_per_neighbour * degree;
  if (products > 0) {
    const auto compressor =
        make_compressor(options.compressor, ContractKind::any, host_ops(), layout);
    work.exchange = products * columns_of_matrices(*compressor, layout);
  }
  return work;
}

std::optional<StepWork> step_work(const TrainPlan& plan, const ParameterLayout& layout,
                                  int degree) {
  const StepWork work = multiply_adds_of(plan, layout, degree);
  if (work.step + work.exchange == 0) {
    return work;
  }
  const double gradient = score_terms(plan).flops_per_round.value_or(0);
  if (gradient == 0) {
    return std::nullopt;
  }
  return StepWork{.step = 2 * work.step / gradient, .exchange = 2 * work.exchange / gradient};
}

std::optional<StepWork> step_work(const TrainPlan& plan, const ParameterLayout& layout) {
  const OptimizerOptions& options = plan.run.optimizer;
  const bool by_neighbours = algorithm_info(options.algorithm).planned.products_per_neighbour > 0;
  return step_work(plan, layout,
                   by_neighbours ? properties(*make_job_topology(options)).degree_max : 0);
}

void add_step_work(double work, std::vector<NodeSpec>& nodes) {
  for (NodeSpec& node : nodes) {
    node.compute.slowdown *= 1 + work;
  }
}

void add_second_decoding(const TrainPlan& plan, std::vector<NodeSpec>& nodes) {
  const AlgorithmSpec algorithm = parse_algorithm(plan.run.optimizer.algorithm);
  const int decodings = decodings_of_messages(algorithm.hyperparameters);
  for (NodeSpec& node : nodes) {
    node.codec.first_phase_decodings = decodings;
    node.codec.first_bucket = plan.run.optimizer.groups.empty() ? 0 : 1;
  }
}

}  // namespace sotto::study
