// A look into a store that may be gone, and a word there that any node may leave. Pure functions;
// thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include <sotto/base/elapsed.h>
#include <sotto/base/status.h>
#include <sotto/comm/store.h>

namespace sotto::internal {

/// The answer of a store to a look for a key.
struct StoreLook {
  bool answered = false;                          ///< the store answered
  std::optional<std::vector<std::byte>> value{};  ///< value of the key; none: there is no such key
};

/// Takes a second where nobody answers: a node that wants to leave promptly looks before it sets
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

/// Sets `key` to nothing, unless it is there. Where clients are known by their keys only the node
/// that comes first may set it (comm/zmq/store/store_rules.h), and for the others it is there then.
inline Status set_once(Store& store, std::string_view key) {
  if (look_for(store, key).value) {
    return {};
  }
  Status status = store.set(key, {});
  return status.ok() || look_for(store, key).value ? Status() : status;
}

}  // namespace sotto::internal
