// Quantities as people read them.
#include <doctest/doctest.h>

#include <sotto/sim/network/platform.h>
#include <sotto/study/units.h>

namespace sotto::test::units_test {

using namespace sotto::study;

TEST_CASE("durations are told with four digits, in a unit that fits") {
  CHECK(duration_text(0) == "0 s");
  CHECK(duration_text(0.00025) == "250 µs");
  CHECK(duration_text(0.01234567) == "12.35 ms");
  CHECK(duration_text(0.99996) == "1000 ms");
  CHECK(duration_text(60) == "60 s");
  CHECK(duration_text(86'400) == "86400 s");
  CHECK(exact_seconds(60'000'000'000) == 60.0);
  CHECK(rate_text(1.25e6) == "10 Mbit/s");
  CHECK(rate_text(3.125e9) == "25 Gbit/s");
  CHECK(rate_text(kUnlimited) == "no limit");
}

}  // namespace sotto::test::units_test
