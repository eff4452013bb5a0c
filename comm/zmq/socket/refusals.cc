#include "refusals.h"

#include <algorithm>
#include <string>

namespace sotto::internal {

void Refusals::add(std::string_view key, std::string_view address) {
  const std::lock_guard lock(mutex_);
  ++refused_.times;
  auto& latest = refused_.latest;
  const auto known = std::ranges::find(latest, key, &RefusedKey::key);
  if (known != latest.end()) {
    std::rotate(known, known + 1, latest.end());
  } else {
    if (latest.size() == kRemembered) {
      latest.erase(latest.begin());
    }
    latest.push_back({.key = std::string(key), .address = {}});
  }
  latest.back().address = address;
  ++latest.back().times;
}

RefusedKeys Refusals::all() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

void Refusals::forget() {
  const std::lock_guard lock(mutex_);
  refused_ = {};
}

void Refusals::forget_keys() {
  const std::lock_guard lock(mutex_);
  refused_.latest.clear();
}

}  // namespace sotto::internal
