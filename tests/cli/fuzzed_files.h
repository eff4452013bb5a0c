// What the program reads out of files that only it has, for the targets of tests/fuzz. Thread-safe.
#pragma once

#include <string>

namespace sotto::test {

/// Reads the file at `path` as `sotto node` does. Throws Error for what is no description of a
/// site.
void read_as_site(const std::string& path);

/// Reads the file at `path` as the --config of `sotto train`. Throws Error for what is none.
void read_as_config(const std::string& path);

}  // namespace sotto::test
