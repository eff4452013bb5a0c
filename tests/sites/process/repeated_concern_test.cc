// How often an operator hears of a peer that does the same again.
#include <sotto/sites/process/report/repeated_concern.h>

#include <chrono>

#include <doctest/doctest.h>

namespace sotto::test::repeated_concern_test {

TEST_CASE("what a peer does again and again is told after ever longer pauses") {
  using namespace std::chrono_literals;
  RepeatedConcern told;
  int mints = 0;
  int late = 0;
  for (auto time = RepeatedConcern::Time{}; time < RepeatedConcern::Time{} + 24h; time += 1s) {
    mints += told.tell(PeerConcern::mints, time) ? 1 : 0;
    if (time == RepeatedConcern::Time{} + 1h) {
      late += told.tell(PeerConcern::late, time) ? 1 : 0;
    }
  }
  CHECK(late == 1);
  CHECK(mints > 8);
  CHECK(mints < 20);
}

}  // namespace sotto::test::repeated_concern_test
