#include <sotto/sim/network/fifo.h>

#include <doctest/doctest.h>

namespace sotto::test::fifo_test {

TEST_CASE("a queue that is never empty keeps its order, and its memory small") {
  Fifo<int> queue;
  int pushed = 0;
  for (int popped = 0; popped < 10'000; ++popped) {
    while (queue.size() < 2 + static_cast<std::size_t>(popped % 5)) {
      queue.push(pushed++);
    }
    REQUIRE(queue.front() == popped);
    REQUIRE(queue.pop() == popped);
    REQUIRE(queue.capacity() <= 4 * 6);
  }
  queue.clear();
  CHECK(queue.empty());
}

}  // namespace sotto::test::fifo_test
