// What all mixings are made of, and the steps that each takes alike.
//
// Building blocks of mixings, not for users. One thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/base/status.h>
#include <sotto/compress/compressor.h>
#include <sotto/kernels/ops.h>
#include <sotto/optim/step_rule.h>
#include <sotto/sites/core/pull_bound.h>

namespace sotto::sites {

/// The setup that every mixing needs.
struct MixingSetup {
  std::span<float> parameters;  ///< z
  ParameterLayout layout = {};  ///< complete layout of z
  std::unique_ptr<StepRule> step_rule;
  std::unique_ptr<Compressor> compressor;
  float consensus_stepsize = 1;  ///< η
  PullLimits pull = {};
  std::optional<double> kept = {};  ///< part of ‖x‖² that the compressor keeps (PullBound)
  const Ops* ops = &host_ops();
};

/// The step rule's direction at the parameters, which may lie in `room`, of their dimension.
/// Fault::non_finite where gradient or direction are not finite.
Result<Direction> direction_of(const MixingSetup& setup, Round step,
                               std::span<const float> gradient, std::span<float> room);

/// A local step, number `step`, of the parameters: x ← x − the step rule's direction, noted by the
/// bound. `room` has their dimension. Fault::non_finite where the gradient or the new x is not
/// finite; x has not changed then.
Status take_step(const MixingSetup& setup, PullBound& bound, Round step,
                 std::span<const float> gradient, std::vector<float>& room);

/// Mixing::stretch of the parameters; `room` has their dimension.
Status stretch_steps(const MixingSetup& setup, PullBound& bound, float factor,
                     std::span<float> room);

/// Fault::non_finite that names `what`, with count and first element, unless all are finite.
Status require_finite(const Ops& ops, std::span<const float> values, std::string_view what);

}  // namespace sotto::sites
