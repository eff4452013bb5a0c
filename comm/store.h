// A small key–value store through which nodes meet: addresses before the first connection, and
// results out of band (never counted as training traffic).
//
// Thread safety: every implementation may be used from several threads. A value has
// kMostStoreValueBytes at most, a key kMostStoreKeyBytes of [A-Za-z0-9._/-].
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/comm/deadline.h>

namespace sotto {

inline constexpr std::size_t kMostStoreKeyBytes = 200;                     ///< longest key
inline constexpr std::size_t kMostStoreValueBytes = std::size_t{1} << 30;  ///< longest value

class Store {
 public:
  virtual ~Store() = default;
  /// Publishes a value; a second set of the same key replaces it.
  virtual Status set(std::string_view key, std::span<const std::byte> value) = 0;
  /// Waits until the key is set. Looks once even if the deadline is over, and then gives a server
  /// one second. Fault::deadline names the key.
  virtual Result<std::vector<std::byte>> get(std::string_view key, Deadline deadline) = 0;
  /// Forgets a key; forgetting an absent one is fine.
  virtual Status remove(std::string_view key) = 0;
};

}  // namespace sotto
