// How long a round waits, from when neighbours came lately.
#include <vector>

#include <doctest/doctest.h>

#include <sotto/sites/core/conduct/patience.h>

namespace sotto::test::patience_test {

using namespace sotto::sites;

namespace {

/// Rounds in which the first `late` of `heard` neighbours come after `after` seconds.
Patience after_rounds(std::size_t heard, std::size_t late, double after) {
  Patience patience(10);
  std::vector<std::size_t> awaited(late);
  for (std::size_t k = 0; k < late; ++k) {
    awaited[k] = k;
  }
  for (int round = 0; round < 50; ++round) {
    const double now = 20.0 * round;
    patience.begin(now, awaited, heard);
    patience.end(now + after);
  }
  return patience;
}

}  // namespace

TEST_CASE("neighbours that are always just in time do not set the pace, if enough are not") {
  for (std::size_t heard = 1; heard <= 9; ++heard) {
    for (std::size_t late = 0; late <= heard; ++late) {
      CAPTURE(heard);
      CAPTURE(late);
      const double lasts = after_rounds(heard, late, 9).lasts();
      CHECK(lasts == doctest::Approx(8 * late <= 5 * heard ? 10 * Patience::kLeastPart : 9));
    }
  }
}

TEST_CASE("before enough have come, a round waits for the longest patience") {
  Patience patience(10);
  patience.begin(0, {}, Patience::kEnough - 1);
  CHECK(patience.lasts() == 10);
  patience.begin(1, {}, 1);
  CHECK(patience.lasts() == 10 * Patience::kLeastPart);
}

}  // namespace sotto::test::patience_test
