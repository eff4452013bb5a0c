#include "command_line.h"

#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include <sotto/console/flag_spelling.h>
#include <sotto/console/signals.h>
#include <sotto/console/usage.h>

namespace sotto::bench {
namespace {

/// As shells have it: 128 + SIGINT.
constexpr int kInterrupted = 130;

int interrupted(const CLI::App& app) { return complain(app, "interrupted", kInterrupted); }

}  // namespace

int complain(const CLI::App& app, const std::string& what, int status) {
  fmt::print(stderr, "{}: {}\n", app.get_name(), what);
  return status;
}

int run_main(CLI::App& app, int argc, const char* const* argv, const std::function<int()>& work) {
  try {
    app.parse(argc, argv);
    const int status = work();
    return status != console::kDone && console::stop_requested() ? interrupted(app) : status;
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0
               ? app.exit(error)  // --help
               : complain(app, console::explain(app, error), console::kWrongRequest);
  } catch (const Shortage& shortage) {
    return complain(app, shortage.render(console::FlagSpelling(app)), console::kFailed);
  } catch (const Error& error) {
    return complain(app, error.render(console::FlagSpelling(app)), console::kWrongRequest);
  } catch (const std::exception& error) {
    return console::stop_requested() ? interrupted(app)
                                     : complain(app, error.what(), console::kFailed);
  }
}

}  // namespace sotto::bench
