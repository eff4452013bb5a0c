// Says during a backward pass which parameters have their gradient.
//
// Thread safety: `ready` is called by the thread that autograd runs on, on the CPU the one that
// called backward(). Ownership: hooks hang on the parameters' gradient accumulators until this is
// destroyed, which no backward pass may outlast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/types.h>

namespace sotto::torch {

class BackwardHooks {
 public:
  /// Calls `ready` with a parameter's index after its gradient has been accumulated, in each
  /// backward pass; what it throws comes out of backward().
  BackwardHooks(const std::vector<::torch::Tensor>& parameters,
                const std::function<void(std::size_t)>& ready);
  ~BackwardHooks();
  BackwardHooks(const BackwardHooks&) = delete;
  BackwardHooks& operator=(const BackwardHooks&) = delete;

 private:
  /// The owner of a gradient accumulator; its type differs between versions of libtorch.
  using Accumulator = decltype(::torch::autograd::impl::grad_accumulator(::torch::Tensor()));
  struct Hook {
    Accumulator accumulator;
    std::uintptr_t key;
  };
  std::vector<Hook> hooks_;
};

}  // namespace sotto::torch
