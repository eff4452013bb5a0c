// The text of a TOML file as tables: bounded in depth, and with both places of what stands twice. A
// pure function; thread-safe.
#pragma once

#include <string>

#include <toml++/toml.h>

namespace sotto::study {

/// Throws Error with file and line of what is no TOML, of what is nested deeper than any file of
/// sotto's, and of a key that is there already, with the line of that one.
toml::table parse_toml(const std::string& path, const std::string& text);

}  // namespace sotto::study
