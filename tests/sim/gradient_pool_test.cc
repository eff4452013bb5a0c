// Gradients that workers take ahead, and those that nobody wants any more.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include <doctest/doctest.h>

#include <sotto/sim/engine/gradient_pool.h>

namespace sotto::test::gradient_pool_test {

TEST_CASE("gradients of nodes that are gone make room for those that are wanted") {
  constexpr int kGone = 200;  // more than workers may be ahead
  std::mutex mutex;
  std::condition_variable taken;
  bool last = false;
  GradientPool pool(kGone + 1, 2, 64, [&](Rank node) {
    const std::lock_guard lock(mutex);
    last = last || node == kGone;
    taken.notify_all();
  });
  for (Rank node = 0; node < kGone; ++node) {
    pool.submit(node);
    pool.forget(node);
    pool.forget(node);  // what was not submitted is no trouble
  }
  pool.submit(kGone);
  std::unique_lock lock(mutex);
  // The worker takes it, without being waited for.
  REQUIRE(taken.wait_for(lock, std::chrono::seconds(60), [&] { return last; }));
  lock.unlock();
  pool.wait(kGone);
  pool.drain();
}

}  // namespace sotto::test::gradient_pool_test
