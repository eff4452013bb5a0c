// A freeze step for algorithms that have one, so that short runs see both of their phases.
#pragma once

#include <string>
#include <string_view>

#include <sotto/optim/registry.h>

namespace sotto::test {

/// The specification with this freeze step, where the algorithm has one and is not given it.
inline std::string with_freeze(std::string_view algorithm, Round freeze_step) {
  AlgorithmSpec spec = parse_algorithm(algorithm);
  if (spec.info->has("freeze") && !spec.hyperparameters.has("freeze")) {
    spec.hyperparameters.set("freeze", std::to_string(freeze_step));
  }
  return spec.text();
}

}  // namespace sotto::test
