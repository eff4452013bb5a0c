// Mistakes on the command line and in settings, in the words of who typed them. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include <CLI/App.hpp>

namespace sotto::cli {

/// What is wrong with a command line that CLI11 could not read, and what would do.
std::string explain(const CLI::App& program, const CLI::ParseError& error);

/// The message of an Error with the library's name of a setting, at its start, replaced by the
/// option that gives it: "learning_rate: …" → "--lr: …".
std::string with_option_names(std::string_view message);

}  // namespace sotto::cli
