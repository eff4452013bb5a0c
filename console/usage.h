// Mistakes on the command line and in settings, in the words of who typed them. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include <CLI/App.hpp>

namespace sotto::console {

/// What is wrong with a command line that CLI11 could not read, and what would do.
std::string explain(const CLI::App& program, const CLI::ParseError& error);

/// What is wrong with the value of `option`, without the option's name in front of it, for a value
/// that goes by another name where it was written. CLI11 tells no more of its errors than a text.
std::string explain_value(const CLI::Option& option, const CLI::Error& error);

}  // namespace sotto::console
