#include "callers_rule.h"

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

/// What the function remembers between two steps is the caller's to save.
class CallersRule final : public StepRule {
 public:
  explicit CallersRule(std::shared_ptr<StepFunction> function) : function_(std::move(function)) {
    if (function_->taken()) {
      throw Error("the step rule makes the steps of another optimizer: create one for each");
    }
  }
  ~CallersRule() override { function_->release(); }
  CallersRule(const CallersRule&) = delete;
  CallersRule& operator=(const CallersRule&) = delete;

  std::string_view name() const override { return function_->name(); }
  void resize(const ParameterLayout& layout) override { next_.resize(dimension_of(layout)); }
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
  void save(ByteBuffer& out) const override { out.write_string(name()); }
  Status load(ByteReader& in) override { return expect_name(in, "step rule", name()); }

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

  std::shared_ptr<StepFunction> function_;
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
          false) {}

StepFunction::StepFunction(std::string name, sotto_next_tensors function, void* context)
    : StepFunction(
          std::move(name),
          [=](Round round, std::size_t first, const float* x, const float* gradient, float* next,
              std::size_t count) {
            return function(context, round, first, x, gradient, next, count);
          },
          true) {}

StepFunction::StepFunction(std::string name, Function function, bool by_tensor)
    : name_(std::move(name)), function_(std::move(function)), by_tensor_(by_tensor) {
  if (name_.empty() || name_.find('\n') != std::string::npos) {
    refuse("name", excerpt(name_), "a step rule's name is a word, which all nodes have in common");
  }
}

Status StepFunction::call(Round round, std::size_t first, std::span<const float> x,
                          std::span<const float> gradient, std::span<float> next) {
  const std::lock_guard lock(mutex_);
  if (function_ == nullptr) {
    return {Fault::stopped, fmt::format("the step rule {} was destroyed", name_)};
  }
  const char* const trouble =
      function_(round, first, x.data(), gradient.data(), next.data(), next.size());
  return trouble == nullptr
             ? Status()
             : Status(Fault::unexpected, fmt::format("the step rule {}: {}", name_, trouble));
}

void StepFunction::end() {
  const std::lock_guard lock(mutex_);
  function_ = nullptr;
}

std::unique_ptr<StepRule> make_callers_rule(std::shared_ptr<StepFunction> function) {
  return std::make_unique<CallersRule>(std::move(function));
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

void sotto_step_rule_destroy(sotto_step_rule* rule) {
  if (rule != nullptr) {
    rule->function->end();
    delete rule;
  }
}
