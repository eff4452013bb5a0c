// The command lines of the programs beside `sotto`: options that its readers read, and what becomes
// of mistakes. One thread at a time.
#pragma once

#include <cstdio>
#include <exception>
#include <functional>
#include <string>

#include <fmt/format.h>
#include <CLI/App.hpp>

#include <sotto/base/error.h>
#include <sotto/console/command.h>
#include <sotto/console/usage.h>

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

/// A program's main: reads the command line and works. The exit status is the one that `work`
/// returns; what goes wrong becomes a message, and the exit status that `sotto` has for it.
inline int run_main(CLI::App& app, int argc, const char* const* argv,
                    const std::function<int()>& work) {
  const auto complain = [&](const std::string& what, int status) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), what);
    return status;
  };
  try {
    app.parse(argc, argv);
    return work();
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0
               ? app.exit(error)  // --help
               : complain(console::explain(app, error), console::kWrongRequest);
  } catch (const Error& error) {
    return complain(error.what(), console::kWrongRequest);
  } catch (const std::exception& error) {
    return complain(error.what(), console::kFailed);
  }
}

}  // namespace sotto::bench
