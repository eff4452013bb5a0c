#include <sotto/trainers/launch/local_processes.h>
#include <sotto/trainers/launch/private_directory.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include <sotto/comm/stores.h>

#include "support/scratch.h"

namespace sotto::test::local_processes_test {

using namespace std::chrono_literals;

namespace {

const std::atomic<bool> kNever{false};

/// Waits for what nobody will do.
void wait_for_ever() {
  while (true) {
    ::pause();
  }
}

bool children_left() { return ::waitpid(-1, nullptr, WNOHANG) >= 0; }

}  // namespace

TEST_CASE("every rank gets a process of its own") {
  const Scratch place;
  const auto store = make_file_store(place.path().string());
  const auto status = run_processes(
      5,
      [&](Rank rank) {
        const auto pid = ::getpid();
        return store->set(std::to_string(rank), std::as_bytes(std::span(&pid, 1)));
      },
      kNever, 1s);
  CHECK(status.ok());
  for (Rank rank = 0; rank < 5; ++rank) {
    CHECK(store->get(std::to_string(rank), Deadline::after(0s)).ok());
  }
  CHECK_FALSE(children_left());
}

TEST_CASE("the fault that explains the others is returned, and nobody is left behind") {
  const auto status = run_processes(
      4,
      [](Rank rank) -> Status {
        if (rank == 2) {
          return {Fault::non_finite, "node 2: a NaN"};
        }
        if (rank == 3) {
          wait_for_ever();
        }
        return {Fault::peer_lost, "node 2 is lost"};
      },
      kNever, 200ms);
  CHECK(status.fault() == Fault::non_finite);
  CHECK(status.message() == "node 2: a NaN");
  CHECK_FALSE(children_left());
}

TEST_CASE("a killed node is named with its signal") {
  const auto status = run_processes(
      3,
      [](Rank rank) -> Status {
        if (rank == 1) {
          ::raise(SIGKILL);
        }
        return {Fault::peer_lost, "node 1 is lost"};
      },
      kNever, 1s);
  CHECK(contains(status.message(), "node 1 was killed by signal 9"));
}

TEST_CASE("a wrong request of a node is thrown here") {
  const auto message = refusal([] {
    (void)run_processes(
        3,
        [](Rank rank) -> Status {
          if (rank == 1) {
            throw Error("--lr: no");
          }
          wait_for_ever();
          return {};
        },
        kNever, 1h);
  });
  CHECK(message == "--lr: no");
  CHECK_FALSE(children_left());
}

TEST_CASE("a stop ends all children at once") {
  const std::atomic<bool> stop{true};
  const auto status = run_processes(
      3,
      [](Rank) -> Status {
        wait_for_ever();
        return {};
      },
      stop, 1h);
  CHECK(status.fault() == Fault::stopped);
  CHECK_FALSE(children_left());
}

TEST_CASE("a private directory is there, is private, and goes") {
  std::string path;
  {
    const PrivateDirectory place;
    path = place.path();
    CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms::others_all) ==
          std::filesystem::perms::none);
    std::ofstream(path + "/file") << "x";
  }
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK_FALSE(children_left());
}

TEST_CASE("a private directory goes also when its owner is killed, once its children are gone") {
  const Scratch scratch;
  const auto store = make_file_store((scratch.path() / "store").string());
  const auto kept = (scratch.path() / "kept").string();
  std::filesystem::create_directory(kept);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t owner = ::fork();
  REQUIRE(owner >= 0);
  if (owner == 0) {
    ::close(ends[0]);
    ::setenv("TMPDIR", kept.c_str(), 1);
    const PrivateDirectory place;
    std::ofstream(place.path() + "/file") << "x";
    (void)run_processes(
        2,
        [&](Rank rank) -> Status {
          (void)store->set(std::to_string(rank), {});
          wait_for_ever();
          return {};
        },
        kNever, 1h);
    ::_exit(0);
  }
  ::close(ends[1]);
  for (const char* rank : {"0", "1"}) {
    REQUIRE(store->get(rank, Deadline::after(60s)).ok());
  }
  CHECK_FALSE(std::filesystem::is_empty(kept));
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  // The nodes had the pipe open too.
  char nothing = 0;
  CHECK(::read(ends[0], &nothing, 1) == 0);
  ::close(ends[0]);
  const auto patience = Deadline::after(60s);
  while (!std::filesystem::is_empty(kept) && !patience.expired()) {
    std::this_thread::yield();
  }
  CHECK(std::filesystem::is_empty(kept));
}

}  // namespace sotto::test::local_processes_test
