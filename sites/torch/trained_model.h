// The parameters of a libtorch model as one flat vector that a node trains, and the torch optimizer
// that makes its steps, where there is one. What SiteOptimizer and ElasticOptimizer are built of;
// not for users.
//
// One thread at a time. It views the parameters, and owns the optimizer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include <torch/optim/optimizer.h>

#include <sotto/base/ids.h>
#include <sotto/trainers/torch/distributed_optimizer.h>
#include <sotto/trainers/torch/distributed_run.h>
#include <sotto/trainers/torch/flat_parameters.h>
#include <sotto/trainers/torch/local_optimizer.h>
#include <sotto/trainers/torch/optimizer_kinds.h>

namespace sotto::torch {

/// Sets rates and other options of the groups for the step of this number, from 0.
using Schedule = std::function<void(Round step, ParameterGroups& groups)>;

class TrainedModel {
 public:
  /// Steps are made by a rule of sotto's.
  explicit TrainedModel(const NamedParameters& named);
  /// Steps are made by `local`, which throws Error if it evaluates the loss several times a step.
  TrainedModel(std::unique_ptr<::torch::optim::Optimizer> local, const NamedParameters& names);

  /// The options of a node (SiteOptions, ElasticOptions) whose steps are made so, which name what
  /// others must share of it. This object must outlive the node.
  template <typename Options>
  Options with_steps(Options options) {
    if (local_ != nullptr) {
      const AgreedSettings settings = optimizer_settings(*local_, groups_);
      options.further.insert(options.further.end(), settings.begin(), settings.end());
      options.own_step_rule = [this] {
        auto rule = std::make_unique<LocalOptimizer>(*local_, groups_, states_, flat_);
        rule->set_schedule([this](Round step, ParameterGroups& groups) {
          if (schedule_) {
            schedule_(step, groups);
          }
        });
        return rule;
      };
      if constexpr (requires { options.own_step_settings; }) {
        options.own_step_settings = [this](Round step) { return settings_of(step); };
      }
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
  /// Whether a torch optimizer makes the steps.
  bool has_optimizer() const { return local_ != nullptr; }
  /// From now on the torch optimizer's groups are as this says.
  void set_schedule(Schedule schedule) { schedule_ = std::move(schedule); }

 private:
  /// A digest of what the schedule says of a step, which leaves the groups as they are.
  std::uint64_t settings_of(Round step) const;

  std::unique_ptr<::torch::optim::Optimizer> local_;  ///< null: the step rule is sotto's
  ParameterGroups groups_;                            ///< of local_, as its states are
  ParameterStates states_;
  FlatParameters flat_;
  Schedule schedule_;  ///< none: groups stay as they are
};

}  // namespace sotto::torch
