// A step rule of the program's own: a function of the caller's makes a node's step, from the
// gradient that the algorithm hands over to the next model.
//
// Thread safety: a StepFunction is called by one thread at a time, the driver's among them, and may
// be ended by any other. Ownership: the handle of sotto.h and the rule share it, so that either may
// go first. Errors: what the function says is wrong becomes a fault that ends the run.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/optim/step_rule.h>

#include "sotto.h"

namespace sotto::c {

class StepFunction {
 public:
  /// Throws Error for a name that settings cannot hold.
  StepFunction(std::string name, sotto_next_model function, void* context);
  /// A function that makes the step of some tensors alone. Throws Error likewise.
  StepFunction(std::string name, sotto_next_tensors function, void* context);

  const std::string& name() const { return name_; }
  /// Whether a node has it now; the first that asks gets it.
  bool taken() { return taken_.test_and_set(std::memory_order_acquire); }
  /// Gives it back.
  void release() { taken_.clear(std::memory_order_release); }

  /// Whether it makes the step of some tensors alone.
  bool by_tensor() const { return by_tensor_; }
  /// Calls the function, for parameters from `first` on: for all of them unless by_tensor(). All
  /// spans have one length.
  Status call(Round round, std::size_t first, std::span<const float> x,
              std::span<const float> gradient, std::span<float> next);
  /// Waits for a call that is under way. After it each call is a fault.
  void end();

 private:
  using Function = std::function<const char*(Round round, std::size_t first, const float* x,
                                             const float* gradient, float* next, std::size_t)>;
  StepFunction(std::string name, Function function, bool by_tensor);

  const std::string name_;
  std::mutex mutex_;   ///< held during a call
  Function function_;  ///< empty once it was ended
  const bool by_tensor_;
  std::atomic_flag taken_;
};

/// The rule of one node, which has `function` until it goes. Throws Error when another node has it.
std::unique_ptr<StepRule> make_callers_rule(std::shared_ptr<StepFunction> function);

}  // namespace sotto::c

struct sotto_step_rule {
  std::shared_ptr<sotto::c::StepFunction> function;
};
