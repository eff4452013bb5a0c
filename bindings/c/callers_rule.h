// A step rule of the program's own: a function of the caller's makes a node's step, from the
// gradient that the algorithm hands over to the next model.
//
// Thread safety: a StepFunction is called by one thread at a time, the driver's among them, and may
// be ended by any other. Ownership: the handle of sotto.h and the rules share it, so that either
// may go first. Errors: what the function says is wrong becomes a fault that ends the run, or the
// node.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/bytes.h>
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

  /// Has what it remembers between two steps saved and loaded by these. To be called before a node
  /// has it.
  void remember_by(sotto_save_state saving, sotto_load_state loading);
  /// Has the settings of each step told by this. To be called before a node has it.
  void tell_settings_by(sotto_step_settings settings);
  /// Whether remember_by was called.
  bool remembers() const { return load_ != nullptr; }
  /// Whether tell_settings_by was called.
  bool tells_settings() const { return settings_ != nullptr; }

  /// Whether it makes the step of some tensors alone.
  bool by_tensor() const { return by_tensor_; }
  /// Calls the function, for parameters from `first` on: for all of them unless by_tensor(). All
  /// spans have one length.
  Status call(Round round, std::size_t first, std::span<const float> x,
              std::span<const float> gradient, std::span<float> next);
  /// What it remembers, which the program is asked for once between two steps; none where that
  /// fails: each later call is the fault then, and `unsaved` says it.
  std::optional<std::span<const std::byte>> save();
  /// What went wrong when it was to be saved.
  Status unsaved();
  /// Has it remember what save() has written; no bytes: nothing, as before its first step.
  Status load(std::span<const std::byte> state);
  /// A number for the settings of a step; 0 once it was ended.
  std::uint64_t settings_of(Round step);
  /// Has saving more than so many bytes fail.
  void limit_state(std::size_t most);
  /// Waits for a call that is under way. After it each call is a fault.
  void end();

 private:
  using Function = std::function<const char*(Round round, std::size_t first, const float* x,
                                             const float* gradient, float* next, std::size_t)>;
  StepFunction(std::string name, Function function, bool by_tensor, void* context);
  Status destroyed() const;
  /// What is wrong, as a fault that names the rule.
  Status fault(const char* trouble) const;

  const std::string name_;
  std::mutex mutex_;   ///< held during a call
  Function function_;  ///< empty once it was ended
  const bool by_tensor_;
  void* const context_;
  sotto_save_state save_ = nullptr;
  sotto_load_state load_ = nullptr;
  sotto_step_settings settings_ = nullptr;
  std::size_t most_ = std::numeric_limits<std::size_t>::max();  ///< bytes of what is saved
  Status unsaved_;                               ///< what went wrong when it was to be saved
  std::optional<std::vector<std::byte>> saved_;  ///< what it remembers now; none: not asked for yet
  std::atomic_flag taken_;
};

/// Bytes that a rule may remember of a model of so many parameters.
using MostState = std::size_t (*)(std::size_t parameters);

/// Makes the rules of one node, which has `function` until they and the factory are gone; each
/// begins without a memory, where the function has one to save. With `most`, saving more fails.
/// Throws Error when another node has it.
StepRuleFactory make_callers_rules(std::shared_ptr<StepFunction> function,
                                   MostState most = nullptr);

}  // namespace sotto::c

struct sotto_step_rule {
  std::shared_ptr<sotto::c::StepFunction> function;
};
