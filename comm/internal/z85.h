// Z85 (rfc.zeromq.org/spec/32): keys as text, 5 characters for 4 bytes. Pure functions;
// thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace sotto::internal {

/// The text of a whole number of 4 bytes.
std::string z85(std::span<const std::byte> bytes);
/// Fills `bytes` from a text of exactly its length; false, and `bytes` is not to be used, for a
/// text that is none. Keeps no copy: the text may be a secret.
bool read_z85(std::string_view text, std::span<std::byte> bytes);

}  // namespace sotto::internal
