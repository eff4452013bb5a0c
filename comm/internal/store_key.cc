#include "store_key.h"

#include <algorithm>

#include <fmt/format.h>

#include <sotto/comm/store.h>

namespace sotto::internal {
namespace {

bool allowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '/' || c == '-';
}

}  // namespace

Status check_store_key(std::string_view key) {
  if (key.empty() || key.size() > kMostStoreKeyBytes) {
    return {Fault::malformed, fmt::format("a store key of {} characters: 1 to {} are allowed",
                                          key.size(), kMostStoreKeyBytes)};
  }
  if (!std::all_of(key.begin(), key.end(), allowed)) {
    return {Fault::malformed, "a store key with characters other than A-Z a-z 0-9 . _ / -"};
  }
  return {};
}

Status check_store_entry(std::string_view key, std::span<const std::byte> value) {
  if (value.size() > kMostStoreValueBytes) {
    return {Fault::malformed, fmt::format("a store value of {} bytes: at most {} are allowed",
                                          value.size(), kMostStoreValueBytes)};
  }
  return check_store_key(key);
}

Status check_store_claim(std::string_view key, std::span<const std::byte> value, std::size_t most) {
  if (value.empty() || value.size() > most) {
    return {Fault::malformed,
            fmt::format("a store value of {} bytes: 1 to {} are claimed with", value.size(), most)};
  }
  return check_store_key(key);
}

Status store_overdue(std::string_view key) {
  return {Fault::deadline, fmt::format("nobody published '{}' in the store in time", key)};
}

Status store_overdue(std::string_view key, const Deadline& deadline) {
  return deadline.stopped()
             ? Status(Fault::stopped,
                      fmt::format("stopped while waiting for '{}' in the store", key))
             : store_overdue(key);
}

Status store_unclaimed(std::string_view key) {
  return {Fault::malformed,
          fmt::format("'{}' is empty in the store, or is removed again and again", key)};
}

Status store_replaced(std::string_view key) {
  return {Fault::unexpected, fmt::format("'{}' was replaced while it was fetched", key)};
}

}  // namespace sotto::internal
