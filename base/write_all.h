// Writing to a descriptor until all is written: signals and short writes are no errors. Thread-safe
// as the descriptor is.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string_view>

namespace sotto {

/// 0, or the errno of what failed; a part may be written then.
int write_all(int descriptor, std::string_view text);
/// 0, or the errno of what failed; a part may be written then.
int write_all(int descriptor, std::span<const std::byte> bytes);

/// As write_all, from byte `at` of the file on; the descriptor's own place stays.
int write_all_at(int descriptor, std::string_view text, off_t at);

}  // namespace sotto
