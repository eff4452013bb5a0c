#include <sotto/optim/wrappers/piece_setup.h>

#include <utility>

namespace sotto {

AlgorithmSetup piece_setup(const AlgorithmSetup& whole, std::uint32_t number,
                           std::span<float> parameters, std::unique_ptr<StepRule> step_rule) {
  AlgorithmSetup piece;
  piece.rank = whole.rank;
  piece.nodes = whole.nodes;
  piece.parameters = parameters;
  piece.layout = complete_layout({}, parameters.size());
  piece.topology = whole.topology;
  piece.step_rule = std::move(step_rule);
  piece.compressor = whole.compressor->clone();
  piece.compressor->set_workers(whole.compressor->shared_workers());
  piece.hyperparameters = whole.hyperparameters;
  piece.terms = whole.terms;
  piece.seed = whole.seed;
  piece.run_id = whole.run_id;
  piece.bucket = number;
  piece.allow_contract_violation = whole.allow_contract_violation;
  piece.ops = whole.ops;
  piece.accelerator = whole.accelerator;
  return piece;
}

}  // namespace sotto
