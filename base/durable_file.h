// Files that survive a crash: the old or the new contents, never a mixture. Thread-safe for
// different paths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/status.h>

namespace sotto {

/// The users that may read a file.
enum class FileReaders : std::uint8_t {
  all,    ///< the readers of the file that is replaced; for a new one, all that the umask leaves
  owner,  ///< the file's owner alone, mode 0600
};

/// Writes a new file beside `path`, syncs it, renames it to `path` and syncs the directory. On
/// Fault::io, `path` is as it was before. Follows no link.
Status write_durably(const std::string& path, std::span<const std::byte> bytes,
                     FileReaders readers = FileReaders::all);
/// Likewise, with contents that lie in parts, which follow one another in the file.
Status write_durably(const std::string& path, std::span<const std::span<const std::byte>> parts,
                     FileReaders readers = FileReaders::all);

/// OK when write_durably could write `path` now. Leaves nothing behind.
Status check_replaceable(const std::string& path);

/// The whole file; Fault::io when it is absent, unreadable, or larger than `max_bytes`.
Result<std::vector<std::byte>> read_file(const std::string& path, std::size_t max_bytes);

}  // namespace sotto
