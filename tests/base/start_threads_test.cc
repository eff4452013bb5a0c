#include <sotto/base/start_threads.h>

#include <atomic>
#include <string>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/workers.h>

namespace sotto::test::start_threads_test {

namespace {

constexpr std::size_t kWanted = 5;

/// What `make` says when the system gives no more than `starts` threads; empty where it succeeds.
template <typename Make>
std::string said_after(std::size_t starts, Make make) {
  const ThreadShortage shortage(starts);
  try {
    make();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::string count_text(std::size_t started, std::size_t wanted) {
  return "the system gave " + std::to_string(started) + " of " + std::to_string(wanted) + " ";
}

}  // namespace

TEST_CASE("whichever start fails, side by side nothing runs, and the message counts") {
  for (std::size_t starts = 0; starts < kWanted; ++starts) {
    CAPTURE(starts);
    std::atomic<int> ran = 0;
    const auto said = said_after(
        starts, [&] { run_side_by_side(kWanted, "nodes", [&](std::size_t) { ++ran; }); });
    CHECK(ran == 0);
    CHECK(said.starts_with("threads for nodes: "));
    CHECK(said.find(count_text(starts, kWanted)) != std::string::npos);
    CHECK(said.find("pids.max") != std::string::npos);
  }
  std::atomic<std::size_t> sum = 0;
  CHECK(said_after(kWanted, [&] {
          run_side_by_side(kWanted, "nodes", [&](std::size_t k) { sum += k + 1; });
        }).empty());
  CHECK(sum == 1 + 2 + 3 + 4 + 5);
}

TEST_CASE("whichever start fails, the threads that were started are ended and joined") {
  for (std::size_t starts = 0; starts < kWanted; ++starts) {
    CAPTURE(starts);
    std::atomic<std::size_t> inside = 0;
    std::atomic<bool> ending = false;
    const auto said = said_after(starts, [&] {
      static_cast<void>(start_threads(
          kWanted, "work",
          [&](std::size_t) {
            ++inside;
            ending.wait(false);
            --inside;
          },
          [&] {
            ending = true;
            ending.notify_all();
          }));
    });
    CHECK(inside == 0);
    CHECK(ending);
    CHECK(said.find(count_text(starts, kWanted)) != std::string::npos);
  }
}

TEST_CASE("workers for whom threads are missing are refused, for every start") {
  for (std::size_t starts = 0; starts + 1 < kWanted; ++starts) {
    CAPTURE(starts);
    const auto said = said_after(starts, [] { const Workers workers(static_cast<int>(kWanted)); });
    CHECK(said.find(count_text(starts, kWanted - 1)) != std::string::npos);
  }
  CHECK(said_after(kWanted - 1, [] { const Workers workers(static_cast<int>(kWanted)); }).empty());
}

TEST_CASE("a shortage ends with its object") {
  CHECK_FALSE(said_after(0, [] { start_thread("it", [] {}).join(); }).empty());
  CHECK(said_after(1, [] { start_thread("it", [] {}).join(); }).empty());
  start_thread("it", [] {}).join();
}

}  // namespace sotto::test::start_threads_test
