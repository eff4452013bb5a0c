// What stands behind a sotto_optimizer_setup. It shares or copies what is set, so that either may
// go first.
#pragma once

#include <atomic>
#include <memory>

#include <sotto/base/parameter_layout.h>
#include <sotto/comm/store.h>

#include "callers_rule.h"
#include "sotto.h"

struct sotto_optimizer_setup {
  sotto::ParameterLayout layout;                      ///< empty: one tensor of all
  std::shared_ptr<sotto::Store> store;                ///< null: the settings say where
  std::shared_ptr<std::atomic<bool>> interrupt;       ///< null: the optimizer's own
  std::shared_ptr<sotto::c::StepFunction> step_rule;  ///< null: the settings say which
};
