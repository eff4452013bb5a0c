// A look into a store that may be gone. A pure function; thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include <sotto/base/elapsed.h>
#include <sotto/comm/store.h>

namespace sotto::internal {

/// What a store had to say of a key.
struct StoreLook {
  bool answered = false;                          ///< the store is there
  std::optional<std::vector<std::byte>> value{};  ///< none: there is no such key
};

/// Takes a second where nobody answers: whoever wants to leave promptly looks before it sets
/// anything, which would wait for longer.
inline StoreLook look_for(Store& store, std::string_view key) {
  constexpr double kLongestAnswerSeconds = 0.8;  // below what a store gives an absent server
  const auto from = std::chrono::steady_clock::now();
  auto value = store.get(key, Deadline::after({}));
  if (value.ok()) {
    return {true, std::move(*value)};
  }
  return {value.status().fault() == Fault::deadline && seconds_since(from) < kLongestAnswerSeconds};
}

}  // namespace sotto::internal
