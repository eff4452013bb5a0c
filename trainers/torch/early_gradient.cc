#include "early_gradient.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/xxh3.h>

namespace sotto::torch {
namespace {

/// Tells whether a gradient was changed: by its bits, as it may hold NaNs, and their order.
std::uint64_t digest_of(std::span<const float> gradient) { return xxh3(std::as_bytes(gradient)); }

}  // namespace

EarlyGradient::EarlyGradient(FlatParameters& flat, GiveOn give_on)
    : flat_(flat),
      give_on_(std::move(give_on)),
      given_(flat.parameters().size()),
      hooks_(flat.parameters(), [this](std::size_t index) { ready(index); }) {}

void EarlyGradient::start() {
  forget();
  started_ = true;
}

void EarlyGradient::forget() {
  const std::lock_guard lock(mutex_);
  if (std::ranges::any_of(given_, [](const auto& digest) { return digest.has_value(); })) {
    throw Error(
        "a part of this step's gradient has been sent during the backward pass, and there is no "
        "way back: call step() before the next zero_grad()");
  }
  started_ = false;
  failure_ = nullptr;
}

void EarlyGradient::ready(std::size_t index) {
  const std::lock_guard lock(mutex_);
  if (!started_ || failure_ != nullptr) {
    return;
  }
  // An exception would end the backward pass, and leave gradients of which nobody knows what they
  // are.
  try {
    if (given_[index]) {
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
  const Status status = give_on_(flat_.layout()[index].offset, gradient);
  if (!status.ok()) {
    throw RunFault(status);
  }
  given_[index] = digest_of(gradient);
}

void EarlyGradient::require_unchanged() {
  for (std::size_t i = 0; i < given_.size(); ++i) {
    if (given_[i] && *given_[i] != digest_of(flat_.gather_gradient(i))) {
      throw Error(fmt::format(
          "the gradient of parameter {} was changed after it had been sent during the backward "
          "pass (clipped, or scaled?), which would be without effect: "
          "leave start_in_backward() out",
          flat_.layout()[i].name));
    }
  }
}

void EarlyGradient::finish() {
  const std::lock_guard lock(mutex_);
  if (failure_ != nullptr) {
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  require_unchanged();
  for (std::size_t i = 0; i < given_.size(); ++i) {
    if (!given_[i]) {
      give(i);
    }
  }
  started_ = false;
  std::ranges::fill(given_, std::nullopt);
}

}  // namespace sotto::torch
