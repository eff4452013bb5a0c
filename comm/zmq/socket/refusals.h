// The keys that an authenticator did not let in, for the operator.
//
// Bounded: of many keys the latest are remembered. Thread safety: any thread. Ownership: copies.
#pragma once

#include <mutex>
#include <string_view>

#include <sotto/comm/channels.h>

namespace sotto::internal {

class Refusals {
 public:
  void add(std::string_view key, std::string_view address);
  RefusedKeys all() const;
  /// Forgets all refusals; they do not count any more.
  void forget();
  /// The keys are to be judged anew; how many there were still counts.
  void forget_keys();

 private:
  static constexpr std::size_t kRemembered = 16;

  mutable std::mutex mutex_;
  RefusedKeys refused_;
};

}  // namespace sotto::internal
