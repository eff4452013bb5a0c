// The command lines of the programs beside `sotto`: options that its readers read, and what becomes
// of mistakes. One thread at a time.
#pragma once

#include <functional>
#include <string>

#include <CLI/App.hpp>

#include <sotto/base/error.h>
#include <sotto/console/command.h>

namespace sotto::bench {

/// For options whose value `parse` reads: refuses what it throws Error for, and names the option.
template <typename Parse>
CLI::Validator readable_by(Parse parse) {
  return CLI::Validator(
      [parse](std::string& text) -> std::string {
        try {
          (void)parse(text);
          return {};
        } catch (const Error& error) {
          return error.what();
        }
      },
      "");
}

/// Says on standard error, behind the program's name, what went wrong; returns `status`.
int complain(const CLI::App& app, const std::string& what, int status);

/// A program's main: reads the command line and works. The exit status is the one that `work`
/// returns; what goes wrong becomes a message, and the exit status that `sotto` has for it. Work
/// that fails after a signal asked the program to stop was interrupted: 130, as shells have it.
int run_main(CLI::App& app, int argc, const char* const* argv, const std::function<int()>& work);

}  // namespace sotto::bench
