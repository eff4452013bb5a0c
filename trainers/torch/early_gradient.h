// Hands a gradient over while the backward pass that computes it goes on.
//
// Thread safety: `start` and `finish` on the caller's thread; in between autograd's threads hand
// over gradients, one at a time. Ownership: what it is given must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/status.h>

#include "backward_hooks.h"
#include "flat_parameters.h"

namespace sotto::torch {

class EarlyGradient {
 public:
  /// Takes the gradient of the parameters from `first` on, as Optimizer::gradient_part does.
  using GiveOn = std::function<Status(std::size_t first, std::span<const float> part)>;

  EarlyGradient(FlatParameters& flat, GiveOn give_on);

  /// Hands over from now on a gradient as soon as it is there. The node's round has begun.
  void start();
  bool started() const { return started_; }
  /// Takes `start`, and what went wrong since, back. Throws Error when some of the step's gradient
  /// has been handed over.
  void forget();
  /// Hands over the gradients that have not been, and ends. What went wrong meanwhile is thrown;
  /// after that it may be tried again.
  void finish();

 private:
  void ready(std::size_t index);
  void give(std::size_t index);
  void require_unchanged();

  FlatParameters& flat_;
  const GiveOn give_on_;
  std::mutex mutex_;  ///< guards what follows
  bool started_ = false;
  /// A digest of each gradient that was handed over, by parameter. (Versions of tensors do not
  /// tell: torch's clipping goes round them.)
  std::vector<std::optional<std::uint64_t>> given_;
  std::exception_ptr failure_;  ///< the first failure
  BackwardHooks hooks_;
};

}  // namespace sotto::torch
