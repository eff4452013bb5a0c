// The rules for keys and values that every store keeps. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <sotto/base/status.h>
#include <sotto/comm/deadline.h>

namespace sotto::internal {

/// Fault::malformed unless the key is 1 … kMostStoreKeyBytes characters of [A-Za-z0-9._/-].
Status check_store_key(std::string_view key);
/// Checks the key as check_store_key does, and the value's length.
Status check_store_entry(std::string_view key, std::span<const std::byte> value);
/// Checks the key as check_store_key does, and that the value is not empty and fits `most`.
Status check_store_claim(std::string_view key, std::span<const std::byte> value, std::size_t most);
/// The fault of a get that nobody answered.
Status store_overdue(std::string_view key);
/// The fault of a get that a deadline has ended, which may have been a stop.
Status store_overdue(std::string_view key, const Deadline& deadline);
/// Times that a key is claimed whose value is removed meanwhile, before that is given up.
inline constexpr int kMostClaims = 8;
/// The fault of a claim after so many.
Status store_unclaimed(std::string_view key);
/// The fault of a get during which another value took the place of the one that was fetched.
Status store_replaced(std::string_view key);

}  // namespace sotto::internal
