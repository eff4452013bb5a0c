#include <sotto/base/workers.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

namespace sotto::test::workers_test {

TEST_CASE("every part is done once, whatever the number of threads") {
  for (const int threads : {1, 2, 3, 7}) {
    CAPTURE(threads);
    Workers workers(threads);
    CHECK(workers.threads() == threads);
    for (const std::size_t parts : {0U, 1U, 2U, 5U, 100U}) {
      std::vector<std::atomic<int>> calls(parts);
      workers.run(parts, [&](std::size_t k) { ++calls[k]; });
      for (const auto& count : calls) {
        CHECK(count == 1);
      }
    }
  }
}

TEST_CASE("helpers take part") {
  // Two parts that wait for each other end only on two threads.
  Workers workers(2);
  std::atomic<int> here{0};
  workers.run(2, [&](std::size_t) {
    ++here;
    while (here < 2) {
      std::this_thread::yield();
    }
  });
  CHECK(here == 2);
}

TEST_CASE("what a part throws reaches the caller, and the next job is done") {
  for (const int threads : {1, 2, 3}) {
    Workers workers(threads);
    for (int turn = 0; turn < 20; ++turn) {
      std::string caught;
      try {
        workers.run(8, [](std::size_t k) { throw std::runtime_error(std::to_string(k)); });
      } catch (const std::runtime_error& error) {
        caught = error.what();
      }
      CHECK(caught == "0");
      std::atomic<int> done{0};
      workers.run(8, [&](std::size_t) { ++done; });
      CHECK(done == 8);
    }
  }
}

TEST_CASE("several threads, and parts themselves, may ask the same workers") {
  Workers workers(3);
  std::atomic<int> done{0};
  const auto ask = [&] {
    for (int turn = 0; turn < 50; ++turn) {
      workers.run(4, [&](std::size_t) { workers.run(2, [&](std::size_t) { ++done; }); });
    }
  };
  std::thread other(ask);
  ask();
  other.join();
  CHECK(done == 2 * 50 * 4 * 2);
}

TEST_CASE("a number of threads that makes no sense is refused") {
  CHECK_THROWS_AS(Workers(0), Error);
  CHECK_THROWS_AS(Workers(-1), Error);
  CHECK_THROWS_AS(Workers(257), Error);
}

}  // namespace sotto::test::workers_test
