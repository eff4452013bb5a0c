// Limits of time among settings.
#include <chrono>
#include <limits>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/trainers/settings/optimizer_settings.h>
#include <sotto/trainers/settings/time_limit.h>

namespace sotto::test::time_limit_test {

using std::chrono::milliseconds;

TEST_CASE("a limit of time is the nearest millisecond") {
  CHECK(time_limit("timeout", 0.001, 10) == milliseconds(1));
  CHECK(time_limit("timeout", 10, 10) == milliseconds(10'000));
  // 1000 of these are less than 1001 in binary.
  CHECK(time_limit("timeout", 1.001, 10) == milliseconds(1001));
  OptimizerSettings settings;
  settings.timeout_s = 1.001;
  CHECK(options_of(settings, 1).timeout == milliseconds(1001));
}

TEST_CASE("a limit of time that is none is refused with its setting and the longest") {
  for (const double seconds : {0.0009, 10.1, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    CAPTURE(seconds);
    CHECK_THROWS_WITH_AS(time_limit("patience", seconds, 10),
                         doctest::Contains("it must be 0.001 to 10 seconds"), Error);
  }
  CHECK_THROWS_WITH_AS(time_limit("timeout", 1e7, kMostTimeoutSeconds),
                       doctest::Contains("it must be 0.001 to 1000000 seconds"), Error);
  CHECK(time_limit("timeout", 0.1, 10, 0.1) == milliseconds(100));
  CHECK_THROWS_WITH_AS(time_limit("timeout", 0.099, 10, 0.1),
                       doctest::Contains("0.1 to 10 seconds"), Error);
  CHECK_THROWS_WITH_AS(time_limit("timeout", 1e6, 24 * 3600),
                       doctest::Contains("0.001 to 86400 seconds"), Error);
}

}  // namespace sotto::test::time_limit_test
