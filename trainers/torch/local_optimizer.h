// A torch optimizer as a step rule: it makes a node's own step, from the gradient that the
// algorithm hands it to the next model.
//
// It works on tensors of its own, which lie where the algorithm wants the next model, so that the
// model's parameters are not touched before the algorithm has taken the step. Its parameter groups
// and its state are the caller's (of the DistributedOptimizer) and lent to it for the time of a
// step, so that there is one set of options, and what is remembered of a parameter is found under
// that parameter.
//
// Thread safety: one thread at a time; an algorithm that averages gradients calls it on the
// driver's thread, while the caller's waits. Memory: the optimizer's state; two floats a parameter
// around optimizers that are not torch's own, and one where the algorithm wants the direction in
// the gradient's place.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <torch/optim/optimizer.h>

#include <sotto/optim/step_rule.h>

#include "flat_parameters.h"
#include "optimizer_kinds.h"
#include "parameter_state.h"

namespace sotto::torch {

class LocalOptimizer final : public StepRule {
 public:
  /// `groups` and `states` are those of `optimizer`, which has none itself but in a step. All, and
  /// `flat`, must outlive it.
  LocalOptimizer(::torch::optim::Optimizer& optimizer, ParameterGroups& groups,
                 ParameterStates& states, const FlatParameters& flat);

  /// Takes these groups and states from now on; the former have been moved to them.
  void follow(ParameterGroups& groups, ParameterStates& states);

  /// Calls `schedule` before each step, with its number from 0; it sets the groups' rates and other
  /// options.
  void set_schedule(std::function<void(Round, ParameterGroups&)> schedule) {
    schedule_ = std::move(schedule);
  }

  /// Whether the optimizer is shown missing gradients as missing; otherwise as 0, which is the
  /// default.
  void skip_missing(bool skip) { skip_ = skip; }

  std::string_view name() const override { return "torch"; }
  void resize(const ParameterLayout& layout) override;
  Status direction(Round round, std::span<const float> x, std::span<const float> gradient,
                   std::span<float> d) override;
  Status next_model(Round round, std::span<const float> x, std::span<const float> gradient,
                    std::span<float> next, const Ops& ops) override;
  bool moves_in_place() const override { return separable_; }
  /// Torch's own optimizers step each tensor by itself.
  bool separable() const override { return separable_; }
  void begin_parts(Round round) override { begun_ = follow_schedule(round); }
  Status direction_part(std::size_t first, std::span<const float> x,
                        std::span<const float> gradient, std::span<float> d) override;
  void set_learning_rate(double learning_rate) override;
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

 private:
  class Lent;
  /// Tensors that follow each other in the flat vector: those of numbers begin … end − 1.
  struct Tensors {
    std::size_t begin;
    std::size_t end;
  };
  Status follow_schedule(Round round);
  Tensors all() const { return {0, parameters_.size()}; }
  /// The tensors that make up `elements` elements from `first` on, which begin and end with
  /// tensors.
  Tensors tensors_of(std::size_t first, std::size_t elements) const;
  /// Runs `work` while the optimizer has its groups with these tensors; what it throws becomes a
  /// fault.
  Status with_groups(const Tensors& tensors, const std::function<void()>& work) const;
  /// next ← the next model, for these tensors, given their x and g.
  Status step(const Tensors& tensors, std::span<const float> x, std::span<const float> gradient,
              std::span<float> next);

  ::torch::optim::Optimizer& optimizer_;
  ParameterGroups* groups_;  // never null
  ParameterStates* states_;  // never null
  const FlatParameters& flat_;
  bool separable_;
  bool skip_ = false;
  std::function<void(Round, ParameterGroups&)> schedule_;  // none: groups say what the caller set
  Status begun_;                               // a fault of the schedule, in a step by parts
  std::vector<float> model_;                   // a next model, where it may not lie in its place
  std::vector<float> copy_;                    // copy of g, for an optimizer that may write to it
  std::vector<::torch::Tensor> parameters_;    // parameters, where the last step has put them
  std::vector<std::vector<std::size_t>> own_;  // numbers of the parameters, by group
  std::vector<StateKey> callers_keys_;         // keys of the caller's parameters
  std::vector<StateKey> own_keys_;             // keys of parameters_
};

}  // namespace sotto::torch
