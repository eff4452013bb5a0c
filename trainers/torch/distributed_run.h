// The parts of a DistributedOptimizer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/optim/optimizer.h>

#include <sotto/base/status.h>
#include <sotto/trainers/optimizer.h>
#include <sotto/trainers/torch/distributed_optimizer.h>

#include "buffers.h"
#include "early_gradient.h"
#include "flat_parameters.h"
#include "local_optimizer.h"
#include "optimizer_kinds.h"

namespace sotto::torch {

/// The parts of a node, in the order in which they use each other.
struct DistributedOptimizer::Run {
  OptimizerOptions options;  ///< the options as given
  NamedParameters names;
  std::unique_ptr<::torch::optim::Optimizer> local;  ///< null with a step rule of sotto's
  AgreedSettings local_settings;                     ///< optimizer_settings of `agreed`
  std::size_t shown_warnings = 0;  ///< number of the node's warnings that were shown
  GroupOptions agreed;             ///< options of the caller's groups at the start
  GroupOptions announced;          ///< options of the groups as the others know them
  std::vector<std::size_t> announced_frozen;
  std::vector<std::size_t> group_sizes;  ///< sizes of the caller's groups
  double rate = 0;                       ///< learning rate that sotto's step rule has

  std::optional<FlatParameters> flat;
  Buffers buffers;
  bool own_buffers = false;        ///< the buffers have changed since the start
  LocalOptimizer* rule = nullptr;  ///< the node's step rule, around `local`
  std::optional<sotto::Optimizer> node;
  bool settled = false;       ///< the node has taken the model with which it will meet the others
  bool ended = false;         ///< finish() was called
  bool begun = false;         ///< a round has begun
  GroupOptions started_with;  ///< options of the groups when `early` was started
  /// Gradients handed over in the backward pass, once that was asked for.
  std::optional<EarlyGradient> early;
};

inline void require_ok(const Status& status) {
  if (!status.ok()) {
    throw RunFault(status);
  }
}

}  // namespace sotto::torch
