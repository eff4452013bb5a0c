#include "program_output.h"

#include <unistd.h>

#include <exception>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include <sotto/console/child.h>
#include <sotto/console/signals.h>

namespace sotto::cli {
namespace {

/// Exit statuses above this are of programs that a signal ended.
constexpr int kSignalled = 128;

}  // namespace

std::string program_beside(const std::string& name) {
  std::error_code code;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", code);
  const std::string path = self.parent_path() / name;
  return !code && ::access(path.c_str(), X_OK) == 0 ? path : std::string();
}

Result<std::string> program_output(const std::vector<std::string>& arguments,
                                   std::chrono::milliseconds most) {
  const auto fault = [&](std::string_view what) {
    return Status(Fault::unexpected, fmt::format("{}: {}", arguments.front(), what));
  };
  try {
    const StopRequest stop = console::stop_request();
    console::Child child(arguments);
    const auto ended = child.wait_until(Deadline::after(most, &stop));
    if (!ended) {
      return fault(console::stop_requested() ? "interrupted" : "it took too long");
    }
    if (*ended > kSignalled) {
      return fault(fmt::format("it ended by signal {}", *ended - kSignalled));
    }
    const std::string said = child.errors();
    return *ended == 0 ? Result<std::string>(child.output())
                       : fault(fmt::format("it ended with exit status {}{}{}", *ended,
                                           said.empty() ? "" : ": ", said));
  } catch (const std::exception& error) {
    return fault(error.what());
  }
}

}  // namespace sotto::cli
