#include "early_gradient.h"

#include <algorithm>
#include <utility>

#include <sotto/base/error.h>

namespace sotto::torch {

EarlyGradient::EarlyGradient(FlatParameters& flat, sotto::Optimizer& node)
    : flat_(flat),
      node_(node),
      given_(flat.parameters().size(), 0),
      hooks_(flat.parameters(), [this](std::size_t index) { ready(index); }) {}

void EarlyGradient::start() { started_ = true; }

void EarlyGradient::require_none_given() const {
  if (std::ranges::find(given_, 1) != given_.end()) {
    throw Error(
        "a part of this step's gradient has been sent during the backward pass, and there is no "
        "way "
        "back: call step() before the next zero_grad()");
  }
}

void EarlyGradient::ready(std::size_t index) {
  const std::lock_guard lock(mutex_);
  if (!started_ || failure_ != nullptr) {
    return;
  }
  // An exception would end the backward pass, and leave gradients of which nobody knows what they
  // are.
  try {
    if (given_[index] != 0) {
      throw Error(
          "a second backward pass adds to gradients that have been sent already: call "
          "start_in_backward() before the last one of a step");
    }
    give(index);
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void EarlyGradient::give(std::size_t index) {
  const std::span<const float> gradient = flat_.gather_gradient(index);
  const Status status = node_.gradient_part(flat_.layout()[index].offset, gradient);
  if (!status.ok()) {
    throw RunFault(status);
  }
  given_[index] = 1;
}

void EarlyGradient::finish() {
  const std::lock_guard lock(mutex_);
  if (failure_ != nullptr) {
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  for (std::size_t i = 0; i < given_.size(); ++i) {
    if (given_[i] == 0) {
      give(i);
    }
  }
  started_ = false;
  std::ranges::fill(given_, 0);
}

}  // namespace sotto::torch
