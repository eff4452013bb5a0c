// Files that a command writes in the end: a run that fails leaves none behind, and one that was
// there before stays as it was. One thread at a time.
#pragma once

#include <string>
#include <string_view>

namespace sotto {

/// Refuses (Error naming `option`) a path at which no file could be written, before any work is
/// done; "-" is one, as only results in JSON and files that grow line by line go to standard
/// output. Leaves nothing there. An empty path is no file, and fine.
void check_writable(std::string_view option, const std::string& path);

/// Replaces the file at `path`; writes into a pipe, a device or the target of a link. Throws
/// Shortage (field `option`) when it cannot be written.
void write_result_file(std::string_view option, const std::string& path, std::string_view text);

}  // namespace sotto
