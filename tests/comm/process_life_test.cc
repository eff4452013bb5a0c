// Whether a process still runs, also where the system hides those of other users.
#include "../../comm/internal/meeting/process_life.h"
#include "support/scratch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>

#include <doctest/doctest.h>

namespace sotto::test::process_life_test {

using namespace sotto::internal;
using sotto::test::Scratch;

TEST_CASE("a process lives until it ends, and its number is not enough to be it") {
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pipe[1]);
    char byte = 0;
    (void)!::read(pipe[0], &byte, 1);
    ::_exit(0);
  }
  ::close(pipe[0]);
  const auto pid = static_cast<std::uint64_t>(child);
  const Scratch hidden;  // as hidepid leaves it
  const auto start = start_of(pid);
  REQUIRE(start);
  CHECK(life_of(pid, *start) == Life::lives);
  CHECK(life_of(pid, *start + 1) == Life::gone);
  CHECK_FALSE(start_of(pid, hidden.path()));
  CHECK(life_of(pid, *start, hidden.path()) == Life::unknown);
  ::close(pipe[1]);
  siginfo_t ended{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
  CHECK(life_of(pid, *start) == Life::gone);  // nobody has asked for its status yet
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(life_of(pid, *start) == Life::gone);
  CHECK(life_of(pid, *start, hidden.path()) == Life::gone);
  CHECK(life_of(0, 0) == Life::gone);
  CHECK(life_of(~std::uint64_t{0}, 0) == Life::gone);
}

}  // namespace sotto::test::process_life_test
