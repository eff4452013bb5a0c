// What is spent of a privacy budget, as JSON. A pure function; thread-safe.
#pragma once

#include <sotto/base/json.h>
#include <sotto/optim/privacy/step_budget.h>

namespace sotto {

/// {"epsilon", "delta", "steps", "steps_left"}, the last null without a limit.
inline Json privacy_json(const PrivacySpent& spent) {
  const bool limited = spent.left != kUnlimitedSteps;
  return {{"epsilon", spent.epsilon},
          {"delta", spent.delta},
          {"steps", spent.steps},
          {"steps_left", limited ? Json(spent.left) : Json()}};
}

}  // namespace sotto
