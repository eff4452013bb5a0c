#include "process_life.h"

#include <sys/types.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>

#include <fmt/format.h>

namespace sotto::internal {
namespace {

struct Stat {
  std::string state;
  std::uint64_t start = 0;
  bool over() const { return state == "Z" || state == "X"; }
};

/// The fields of stat that matter, as proc(5) has them; none: the file cannot be read.
std::optional<Stat> read_stat(std::uint64_t pid, const std::filesystem::path& proc) {
  std::ifstream file(proc / fmt::to_string(pid) / "stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto name_end = text.rfind(')');  // a program's name may hold anything
  if (name_end == std::string::npos) {
    return std::nullopt;
  }
  std::istringstream rest(text.substr(name_end + 1));
  Stat stat;
  rest >> stat.state;
  constexpr int kBetween = 18;  // state is the third field, the start the 22nd
  for (int field = 0; field < kBetween; ++field) {
    std::string skipped;
    rest >> skipped;
  }
  return rest >> stat.start ? std::optional(stat) : std::nullopt;
}

/// Whether there is a process of this number, of any user.
bool exists(std::uint64_t pid) {
  const bool possible = pid > 0 && pid <= std::numeric_limits<pid_t>::max();
  return possible && (::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM);
}

}  // namespace

std::optional<std::uint64_t> start_of(std::uint64_t pid, const std::filesystem::path& proc) {
  const auto stat = read_stat(pid, proc);
  return stat && !stat->over() ? std::optional(stat->start) : std::nullopt;
}

Life life_of(std::uint64_t pid, std::uint64_t started, const std::filesystem::path& proc) {
  if (const auto stat = read_stat(pid, proc)) {
    const bool same = !stat->over() && stat->start == started;
    return same ? Life::lives : Life::gone;
  }
  return exists(pid) ? Life::unknown : Life::gone;
}

}  // namespace sotto::internal
