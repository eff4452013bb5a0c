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

/// What a node consists of, in the order in which the parts use each other.
struct DistributedOptimizer::Run {
  OptimizerOptions options;  ///< as they were given
  NamedParameters names;
  std::unique_ptr<::torch::optim::Optimizer> local;  ///< null with a step rule of sotto's
  AgreedSettings local_settings;                     ///< optimizer_settings of `agreed`
  std::size_t shown_warnings = 0;                    ///< of the node's
  GroupOptions agreed;                               ///< of the caller's groups at the start
  GroupOptions announced;                            ///< as the others know them
  std::vector<std::size_t> announced_frozen;
  std::vector<std::size_t> group_sizes;  ///< of the caller's groups
  double rate = 0;                       ///< as the step rule of sotto's has it

  std::optional<FlatParameters> flat;
  Buffers buffers;
  bool own_buffers = false;        ///< this node's are not those of its start any more
  LocalOptimizer* rule = nullptr;  ///< the node's, around `local`
  std::optional<sotto::Optimizer> node;
  bool settled = false;                ///< the node is on what it will meet the others with
  bool ended = false;                  ///< finish() was called
  bool begun = false;                  ///< a round
  std::vector<double> rates;           ///< of the groups when `early` was started
  std::optional<EarlyGradient> early;  ///< once it was asked for
};

inline void require_ok(const Status& status) {
  if (!status.ok()) {
    throw RunFault(status);
  }
}

}  // namespace sotto::torch
