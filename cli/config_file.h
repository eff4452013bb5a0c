// Settings from a TOML file: the options of a command under the same names, with dashes or
// underscores. Not thread-safe.
#pragma once

#include <string>

#include <toml++/toml.h>
#include <CLI/App.hpp>

namespace sotto::cli {

/// Gives every option of `command` that the command line left out the value that the file at `path`
/// has for it. Throws Error naming file, line and key for a key that is no option of the command, a
/// value of the wrong type, and a file that cannot be read or is not TOML.
void apply_config_file(CLI::App& command, const std::string& path);

/// As apply_config_file, with a table of such a file; `path` is for messages.
void apply_settings(CLI::App& command, const toml::table& table, const std::string& path);

}  // namespace sotto::cli
