// XXH3, the checksum of frames and of files' sections: finds damage, not forgery. Pure;
// thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sotto {

/// XXH3-64 of the bytes, with the widest vectors that this processor and the installed xxHash have.
std::uint64_t xxh3(std::span<const std::byte> bytes, std::uint64_t seed = 0);

/// XXH3-128 of the bytes, low word first: where different bytes must not pass for equal ones.
std::array<std::uint64_t, 2> xxh3_128(std::span<const std::byte> bytes, std::uint64_t seed = 0);

}  // namespace sotto
