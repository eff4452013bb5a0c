// The parameters of a libtorch model as one flat vector that a node trains, and the torch optimizer
// that makes its steps, where there is one. What SiteOptimizer and EpochOptimizer are built of; not
// for users.
//
// One thread at a time. It views the parameters, and owns the optimizer.
#pragma once

#include <memory>
#include <span>

#include <torch/optim/optimizer.h>

#include <sotto/trainers/torch/distributed_optimizer.h>
#include <sotto/trainers/torch/distributed_run.h>
#include <sotto/trainers/torch/flat_parameters.h>
#include <sotto/trainers/torch/local_optimizer.h>
#include <sotto/trainers/torch/optimizer_kinds.h>

namespace sotto::torch {

class TrainedModel {
 public:
  /// Steps are made by a rule of sotto's.
  explicit TrainedModel(const NamedParameters& named);
  /// Steps are made by `local`, which throws Error if it evaluates the loss several times a step.
  TrainedModel(std::unique_ptr<::torch::optim::Optimizer> local, const NamedParameters& names);

  /// The options of a node (SiteOptions, EpochOptions) whose steps are made so, which name what
  /// others must share of it. This object must outlive the node.
  template <typename Options>
  Options with_steps(Options options) {
    if (local_ != nullptr) {
      const AgreedSettings settings = optimizer_settings(*local_, groups_);
      options.further.insert(options.further.end(), settings.begin(), settings.end());
      options.own_step_rule = [this] {
        return std::make_unique<LocalOptimizer>(*local_, groups_, states_, flat_);
      };
    }
    return options;
  }

  FlatParameters& flat() { return flat_; }
  /// The parameters' gradients, behind each other; one that is missing counts as 0. Throws Error
  /// where parameters were replaced.
  std::span<const float> gather_gradients();
  /// Takes the parameters' gradients away.
  void zero_grad();
  /// The parameter groups of the torch optimizer; empty without one.
  ParameterGroups& groups() { return groups_; }

 private:
  std::unique_ptr<::torch::optim::Optimizer> local_;  ///< null: the step rule is sotto's
  ParameterGroups groups_;                            ///< of local_, as its states are
  ParameterStates states_;
  FlatParameters flat_;
};

}  // namespace sotto::torch
