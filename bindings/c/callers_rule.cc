#include "callers_rule.h"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/text.h>
#include <sotto/kernels/ops.h>
#include <sotto/optim/state_io.h>
#include <sotto/optim/step_rules/finite_direction.h>

#include "guard.h"

namespace sotto::c {
namespace {

/// In the place of a length: saving has failed.
constexpr std::uint64_t kUnsaved = std::numeric_limits<std::uint64_t>::max();

/// A function while one node has it.
class TakenFunction {
 public:
  explicit TakenFunction(std::shared_ptr<StepFunction> function) : function_(std::move(function)) {
    if (function_->taken()) {
      throw Error("the step rule makes the steps of another optimizer: create one for each");
    }
  }
  ~TakenFunction() { function_->release(); }
  TakenFunction(const TakenFunction&) = delete;
  TakenFunction& operator=(const TakenFunction&) = delete;

  StepFunction* operator->() const { return function_.get(); }

 private:
  std::shared_ptr<StepFunction> function_;
};

/// What a function remembers that does not say how it is saved is the caller's to save.
class CallersRule final : public StepRule {
 public:
  CallersRule(std::shared_ptr<const TakenFunction> function, MostState most)
      : taken_(std::move(function)), function_(*taken_), most_(most) {
    if (function_->remembers()) {
      if (const Status begun = function_->load({}); !begun.ok()) {
        throw Error(begun.message());
      }
    }
  }

  std::string_view name() const override { return function_->name(); }
  void resize(const ParameterLayout& layout) override {
    next_.resize(dimension_of(layout));
    if (most_ != nullptr) {
      function_->limit_state(most_(next_.size()));
    }
  }
  Status direction(Round round, std::span<const float> x, std::span<const float> gradient,
                   std::span<float> d) override {
    return direction_from(round, 0, x, gradient, d);
  }
  bool separable() const override { return function_->by_tensor(); }
  void begin_parts(Round round) override { round_ = round; }
  Status direction_part(std::size_t first, std::span<const float> x,
                        std::span<const float> gradient, std::span<float> d) override {
    return direction_from(round_, first, x, gradient, d);
  }
  Status next_model(Round round, std::span<const float> x, std::span<const float> gradient,
                    std::span<float> next, const Ops& ops) override {
    // The function need not read a gradient where it writes the model.
    const std::span<float> own = std::span(next_).first(next.size());
    if (Status status = function_->call(round, 0, x, gradient, own); !status.ok()) {
      return status;
    }
    ops.copy(own, next);
    return {};
  }
  void set_learning_rate(double /*learning_rate*/) override {
    throw Error("learning_rate",
                "the step rule is the caller's own: change it there, and say so with "
                "sotto_optimizer_announce_settings");
  }
  void save(ByteBuffer& out) const override {
    out.write_string(name());
    if (!function_->remembers()) {
      return;
    }
    const auto state = function_->save();
    out.write(state ? std::uint64_t{state->size()} : kUnsaved);
    out.append(state.value_or(std::span<const std::byte>()));
  }
  Status load(ByteReader& in) override {
    Status named = expect_name(in, "step rule", name());
    if (!named.ok() || !function_->remembers()) {
      return named;
    }
    const auto size = in.read<std::uint64_t>();
    if (size == kUnsaved) {
      return {Fault::malformed,
              fmt::format("what the step rule {} remembered could not be saved", name())};
    }
    const auto state = in.take(size);
    if (in.failed()) {
      return {Fault::malformed, fmt::format("the state of the step rule {} is cut off", name())};
    }
    return function_->load(state);
  }

 private:
  Status direction_from(Round round, std::size_t first, std::span<const float> x,
                        std::span<const float> gradient, std::span<float> d) {
    const std::span<float> next = std::span(next_).first(d.size());
    if (Status status = function_->call(round, first, x, gradient, next); !status.ok()) {
      return status;
    }
    host_ops().subtract(x, next, d);
    return finite_direction(d, host_ops());
  }

  std::shared_ptr<const TakenFunction> taken_;
  const TakenFunction& function_;
  MostState most_;  // null: any
  std::vector<float> next_;
  Round round_ = 0;  // round of a direction in parts
};

}  // namespace

StepFunction::StepFunction(std::string name, sotto_next_model function, void* context)
    : StepFunction(
          std::move(name),
          [=](Round round, std::size_t /*first*/, const float* x, const float* gradient,
              float* next,
              std::size_t count) { return function(context, round, x, gradient, next, count); },
          false, context) {}

StepFunction::StepFunction(std::string name, sotto_next_tensors function, void* context)
    : StepFunction(
          std::move(name),
          [=](Round round, std::size_t first, const float* x, const float* gradient, float* next,
              std::size_t count) {
            return function(context, round, first, x, gradient, next, count);
          },
          true, context) {}

StepFunction::StepFunction(std::string name, Function function, bool by_tensor, void* context)
    : name_(std::move(name)),
      function_(std::move(function)),
      by_tensor_(by_tensor),
      context_(context) {
  if (name_.empty() || name_.find('\n') != std::string::npos) {
    refuse("name", excerpt(name_), "a step rule's name is a word, which all nodes have in common");
  }
}

Status StepFunction::call(Round round, std::size_t first, std::span<const float> x,
                          std::span<const float> gradient, std::span<float> next) {
  const std::lock_guard lock(mutex_);
  if (function_ == nullptr) {
    return destroyed();
  }
  if (!unsaved_.ok()) {
    return unsaved_;
  }
  saved_.reset();
  const char* const trouble =
      function_(round, first, x.data(), gradient.data(), next.data(), next.size());
  return trouble == nullptr ? Status() : fault(trouble);
}

Status StepFunction::destroyed() const {
  return {Fault::stopped, fmt::format("the step rule {} was destroyed", name_)};
}

Status StepFunction::fault(const char* trouble) const {
  return {Fault::unexpected, fmt::format("the step rule {}: {}", name_, trouble)};
}

void StepFunction::remember_by(sotto_save_state saving, sotto_load_state loading) {
  const std::lock_guard lock(mutex_);
  save_ = saving;
  load_ = loading;
}

void StepFunction::tell_settings_by(sotto_step_settings settings) {
  const std::lock_guard lock(mutex_);
  settings_ = settings;
}

std::optional<std::span<const std::byte>> StepFunction::save() {
  const std::lock_guard lock(mutex_);
  if (saved_) {
    return *saved_;
  }
  if (function_ == nullptr) {
    unsaved_ = destroyed();
  }
  if (!unsaved_.ok()) {
    return std::nullopt;
  }
  const void* state = nullptr;
  std::size_t size = 0;
  if (const char* const trouble = save_(context_, &state, &size); trouble != nullptr) {
    unsaved_ = fault(trouble);
    return std::nullopt;
  }
  if (size > most_) {
    unsaved_ = {Fault::unexpected,
                fmt::format("the step rule {} remembers {} bytes, and nodes that come and go take "
                            "{} at most of a model of this size",
                            name_, size, most_)};
    return std::nullopt;
  }
  const auto* const first = static_cast<const std::byte*>(state);
  saved_.emplace(first, first + (state == nullptr ? 0 : size));
  return *saved_;
}

Status StepFunction::unsaved() {
  const std::lock_guard lock(mutex_);
  return unsaved_;
}

void StepFunction::limit_state(std::size_t most) {
  const std::lock_guard lock(mutex_);
  most_ = most;
}

Status StepFunction::load(std::span<const std::byte> state) {
  const std::lock_guard lock(mutex_);
  if (function_ == nullptr) {
    return destroyed();
  }
  saved_.reset();
  const char* const trouble = load_(context_, state.empty() ? nullptr : state.data(), state.size());
  return trouble == nullptr ? Status() : fault(trouble);
}

std::uint64_t StepFunction::settings_of(Round step) {
  const std::lock_guard lock(mutex_);
  return function_ == nullptr ? 0 : settings_(context_, step);
}

void StepFunction::end() {
  const std::lock_guard lock(mutex_);
  function_ = nullptr;
}

StepRuleFactory make_callers_rules(std::shared_ptr<StepFunction> function, MostState most) {
  return [taken = std::make_shared<const TakenFunction>(std::move(function)), most] {
    return std::make_unique<CallersRule>(taken, most);
  };
}

}  // namespace sotto::c

using namespace sotto;     // NOLINT(google-build-using-namespace)
using namespace sotto::c;  // NOLINT(google-build-using-namespace)

sotto_status sotto_step_rule_create(const char* name, sotto_next_model next_model, void* context,
                                    sotto_step_rule** out) {
  return guarded([&] {
    need(name, "name");
    need(reinterpret_cast<const void*>(next_model), "next_model");
    need(out, "out");
    *out = new sotto_step_rule{std::make_shared<StepFunction>(name, next_model, context)};
    return SOTTO_OK;
  });
}

sotto_status sotto_step_rule_create_by_tensor(const char* name, sotto_next_tensors next_tensors,
                                              void* context, sotto_step_rule** out) {
  return guarded([&] {
    need(name, "name");
    need(reinterpret_cast<const void*>(next_tensors), "next_tensors");
    need(out, "out");
    *out = new sotto_step_rule{std::make_shared<StepFunction>(name, next_tensors, context)};
    return SOTTO_OK;
  });
}

sotto_status sotto_step_rule_set_state(sotto_step_rule* rule, sotto_save_state save,
                                       sotto_load_state load) {
  return guarded([&] {
    need(rule, "rule");
    need(reinterpret_cast<const void*>(save), "save");
    need(reinterpret_cast<const void*>(load), "load");
    rule->function->remember_by(save, load);
    return SOTTO_OK;
  });
}

sotto_status sotto_step_rule_set_settings(sotto_step_rule* rule, sotto_step_settings settings) {
  return guarded([&] {
    need(rule, "rule");
    need(reinterpret_cast<const void*>(settings), "settings");
    rule->function->tell_settings_by(settings);
    return SOTTO_OK;
  });
}

void sotto_step_rule_destroy(sotto_step_rule* rule) {
  if (rule != nullptr) {
    rule->function->end();
    delete rule;
  }
}
