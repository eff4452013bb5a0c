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
#include "handles.h"

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
    const std::span<float> next = std::span(next_).first(d.size());
    if (Status status = function_->call(round, x, gradient, next); !status.ok()) {
      return status;
    }
    host_ops().subtract(x, next, d);
    return finite_direction(d, host_ops());
  }
  Status next_model(Round round, std::span<const float> x, std::span<const float> gradient,
                    std::span<float> next, const Ops& ops) override {
    // The function need not read a gradient where it writes the model.
    const std::span<float> own = std::span(next_).first(next.size());
    if (Status status = function_->call(round, x, gradient, own); !status.ok()) {
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
  std::shared_ptr<StepFunction> function_;
  std::vector<float> next_;
};

}  // namespace

StepFunction::StepFunction(std::string name, sotto_next_model function, void* context)
    : name_(std::move(name)), function_(function), context_(context) {
  if (name_.empty() || name_.find('\n') != std::string::npos) {
    refuse("name", excerpt(name_), "a step rule's name is a word, which all nodes have in common");
  }
}

Status StepFunction::call(Round round, std::span<const float> x, std::span<const float> gradient,
                          std::span<float> next) {
  const std::lock_guard lock(mutex_);
  if (function_ == nullptr) {
    return {Fault::stopped, fmt::format("the step rule {} was destroyed", name_)};
  }
  const char* const trouble =
      function_(context_, round, x.data(), gradient.data(), next.data(), next.size());
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

void sotto_step_rule_destroy(sotto_step_rule* rule) {
  if (rule != nullptr) {
    rule->function->end();
    delete rule;
  }
}
