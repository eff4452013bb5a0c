// What is known of torch's own optimizers, by their kind: how they go about tensors, what their
// options and their state say. Others are known by their common interface alone.
//
// Thread safety: functions without state.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include <sotto/trainers/settings/agreed_settings.h>

#include "parameter_state.h"

namespace sotto::torch {

using ParameterGroups = std::vector<::torch::optim::OptimizerParamGroup>;

/// The parameters of all groups, in their order.
std::vector<::torch::Tensor> parameters_in(const ParameterGroups& groups);

/// Throws Error (field `optimizer`) unless this one can make a node's steps.
void require_steps(const ::torch::optim::Optimizer* optimizer);

/// The class of an optimizer: "torch::optim::SGD".
std::string kind_of(const ::torch::optim::Optimizer& optimizer);

/// Whether its step of a tensor depends on that tensor alone. Of others than torch's nobody knows.
bool steps_by_tensor(const ::torch::optim::Optimizer& optimizer);

/// Whether torch lets such an optimizer have sparse gradients, by which it means what it would by
/// dense ones.
bool takes_sparse_gradients(const ::torch::optim::Optimizer& optimizer);

/// The numbers in the options of an optimizer's groups, found so cheaply that each step can look
/// whether a caller, or a scheduler, has changed them.
struct GroupOptions {
  std::vector<double> rates;   ///< learning rate of each group
  std::vector<double> others;  ///< everything else, of the kinds of options that torch has

  bool operator==(const GroupOptions&) const = default;
  /// All groups have one learning rate.
  bool one_rate() const;
};

GroupOptions group_options(const ParameterGroups& groups);

/// An optimizer's kind and the options of its groups, by name, which nodes compare. What options of
/// kinds that torch does not have say besides is compared by a digest of what they write to an
/// archive, and groups beyond the first 64 by one digest.
AgreedSettings optimizer_settings(const ::torch::optim::Optimizer& optimizer,
                                  const ParameterGroups& groups);

/// The state that an optimizer starts with as text, which nodes compare: "fresh", or a digest.
/// Throws Error for a state that does not say what it holds.
std::string state_text(const ParameterGroups& groups, const ParameterStates& states);

/// Takes what torch's own optimizers remember of parameters to float32 on the host, in which sotto
/// makes their steps.
void to_float32(ParameterStates& states);

/// The text of a torch exception, without the stack of calls behind it.
std::string first_line(const std::exception& exception);

/// The bytes of the archive as they would stand in a file.
std::string archive_bytes(::torch::serialize::OutputArchive& archive);

}  // namespace sotto::torch
