#include "backward_hooks.h"

#include <memory>
#include <utility>

#include <torch/csrc/autograd/function_hook.h>

namespace sotto::torch {
namespace {

using ::torch::autograd::variable_list;

class Call final : public ::torch::autograd::FunctionPostHook {
 public:
  Call(std::function<void(std::size_t)> ready, std::size_t index)
      : ready_(std::move(ready)), index_(index) {}

  variable_list operator()(const variable_list& outputs, const variable_list& /*inputs*/) override {
    ready_(index_);
    return outputs;
  }

 private:
  std::function<void(std::size_t)> ready_;
  std::size_t index_;
};

}  // namespace

BackwardHooks::BackwardHooks(const std::vector<::torch::Tensor>& parameters,
                             const std::function<void(std::size_t)>& ready) {
  hooks_.reserve(parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    auto accumulator = ::torch::autograd::impl::grad_accumulator(parameters[i]);
    const std::uintptr_t key = accumulator->add_post_hook(std::make_unique<Call>(ready, i));
    hooks_.push_back({std::move(accumulator), key});
  }
}

BackwardHooks::~BackwardHooks() {
  for (const Hook& hook : hooks_) {
    hook.accumulator->del_post_hook(hook.key);
  }
}

}  // namespace sotto::torch
