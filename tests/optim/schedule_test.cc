#include <sotto/optim/schedule.h>

#include <cmath>
#include <string>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

namespace sotto::test::schedule_test {

TEST_CASE("a constant schedule is 1 after its warm-up, which rises linearly to 1") {
  CHECK(parse_schedule("constant", 100).multiplier(0) == 1);
  const auto warm = parse_schedule("constant,warmup=4", 100);
  CHECK(warm.multiplier(0) == 0.25);
  CHECK(warm.multiplier(1) == 0.5);
  CHECK(warm.multiplier(3) == 1);
  CHECK(warm.multiplier(4) == 1);
  CHECK(warm.multiplier(~Round{0}) == 1);
}

TEST_CASE("a step schedule multiplies by its factor every so many rounds after the warm-up") {
  const auto schedule = parse_schedule("step:10:0.5,warmup=2", 100);
  CHECK(schedule.multiplier(2) == 1);
  CHECK(schedule.multiplier(11) == 1);
  CHECK(schedule.multiplier(12) == 0.5);
  CHECK(schedule.multiplier(22) == 0.25);
  CHECK(parse_schedule("step:10", 100).multiplier(10) == doctest::Approx(0.1));
}

TEST_CASE("a cosine falls from 1 to its floor at the end of the run, and stays there") {
  const auto schedule = parse_schedule("cosine:0.1,warmup=10", 110);
  CHECK(schedule.multiplier(10) == doctest::Approx(1));
  CHECK(schedule.multiplier(60) == doctest::Approx(0.55));
  CHECK(schedule.multiplier(85) == doctest::Approx(0.1 + 0.9 * (1 - std::sqrt(0.5)) / 2));
  CHECK(schedule.multiplier(110) == doctest::Approx(0.1));
  CHECK(schedule.multiplier(100000) == doctest::Approx(0.1));
}

TEST_CASE("the inverse square root schedule") {
  const auto schedule = parse_schedule("invsqrt:10", 0);
  CHECK(schedule.multiplier(0) == 1);
  CHECK(schedule.multiplier(30) == doctest::Approx(0.5));
  CHECK(schedule.multiplier(990) == doctest::Approx(0.1));
}

TEST_CASE("a schedule's specification parses back to the same schedule") {
  for (const char* spec : {"constant", "step:10:0.5", "step:7,warmup=3", "cosine", "cosine:0.25",
                           "invsqrt:100,warmup=5"}) {
    CAPTURE(spec);
    const auto once = parse_schedule(spec, 50);
    const auto twice = parse_schedule(once.spec(), 50);
    CHECK(twice.spec() == once.spec());
    for (Round t = 0; t < 60; ++t) {
      CHECK(twice.multiplier(t) == once.multiplier(t));
    }
  }
}

TEST_CASE("a schedule that cannot be is refused, and the message says what would do") {
  for (const char* spec : {"",
                           "linear",
                           "step",
                           "step:",
                           "step:0",
                           "step:-1",
                           "step:10:2",
                           "step:10:nan",
                           "step:10:0.5:1",
                           "cosine:1.5",
                           "cosine:x",
                           "invsqrt",
                           "invsqrt:0",
                           "constant:1",
                           "constant,warm=3",
                           "constant,warmup=",
                           "constant,warmup=x",
                           "constant,warmup=1,warmup=2",
                           "step:99999999999999999999",
                           "cosine,warmup=100"}) {
    CAPTURE(spec);
    try {
      parse_schedule(spec, 100);
      FAIL("it was taken");
    } catch (const Error& error) {
      const std::string what = error.what();
      CAPTURE(what);
      CHECK(what.find("schedule: '" + std::string(spec) + "' is refused") == 0);
    }
  }
  CHECK_THROWS_AS(parse_schedule("cosine", 0), Error);
}

}  // namespace sotto::test::schedule_test
