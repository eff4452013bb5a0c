// How torch's optimizers find what they remember of a parameter: by the address of its tensor, of
// which older versions of libtorch make a text.
#pragma once

#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

#include <torch/optim/optimizer.h>
#include <torch/types.h>

namespace sotto::torch {

/// The type of torch::optim::Optimizer::state().
using ParameterStates =
    std::remove_cvref_t<decltype(std::declval<::torch::optim::Optimizer&>().state())>;
using StateKey = ParameterStates::key_type;

/// The key of this type for a tensor at an address.
template <typename Key>
Key state_key_of(void* address) {
  if constexpr (std::is_same_v<Key, std::string>) {
    std::ostringstream text;
    text << address;
    return std::move(text).str();
  } else {
    return address;
  }
}

/// The key of a parameter's state.
inline StateKey state_key(const ::torch::Tensor& parameter) {
  return state_key_of<StateKey>(parameter.unsafeGetTensorImpl());
}

}  // namespace sotto::torch
