// Whole files into memory, within bounds.
//
// Private to the loaders. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace sotto {

/// Throws Error "PATH: PLACE: REASON"; an empty place is left out.
[[noreturn]] void refuse_file(const std::filesystem::path& path, std::string_view place,
                              std::string_view reason);

/// Throws Error unless `path` is a folder; `expected` says which files should be in it.
void require_folder(const std::filesystem::path& path, std::string_view expected);

/// The content of a file or a pipe, of at most `max_bytes`. Throws Error.
std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes);

}  // namespace sotto
