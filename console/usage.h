// Mistakes on the command line and in settings, in the words of who typed them. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include <CLI/App.hpp>

namespace sotto::console {

/// What is wrong with a command line that CLI11 could not read, and what would do.
std::string explain(const CLI::App& program, const CLI::ParseError& error);

}  // namespace sotto::console
