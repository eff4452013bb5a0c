// When a curve reaches a target, and holds it.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/study/scenario/target.h>

namespace sotto::test::target_test {

using namespace sotto::study;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

HistoryPoint at(double time, double accuracy, double loss = 1) {
  HistoryPoint point;
  point.time_s = time;
  point.accuracy = accuracy;
  point.loss = loss;
  return point;
}

Target accuracy(double wanted, std::uint64_t sustained) {
  Target target;
  target.accuracy = wanted;
  target.sustained = sustained;
  return target;
}

/// By definition: the first evaluation that reaches it as all that follow do, `sustained` of them
/// or those that are left.
std::optional<std::size_t> by_definition(const Target& target,
                                         const std::vector<HistoryPoint>& history) {
  for (std::size_t from = 0; from < history.size(); ++from) {
    const std::size_t until = std::min<std::size_t>(from + target.sustained, history.size());
    bool all = true;
    for (std::size_t k = from; k < until; ++k) {
      all = all && target.lacking(history[k]) <= 0;
    }
    if (all) {
      return from;
    }
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("the time to the target lies between two evaluations") {
  Target target = accuracy(0.8, 1);
  CHECK(*time_to_target(target, {at(10, 0.5), at(20, 0.7), at(30, 0.9)}) == doctest::Approx(25));
  CHECK(*time_to_target(target, {at(10, 0.9)}) == doctest::Approx(10));
  CHECK_FALSE(time_to_target(target, {at(10, 0.5), at(20, 0.7)}));
  CHECK_FALSE(time_to_target(target, {at(10, kNan), at(20, kNan)}));
  CHECK_FALSE(time_to_target(target, {}));
  target.loss = 0.5;
  CHECK_FALSE(time_to_target(target, {at(10, 0.5), at(20, 0.9)}));
  target.accuracy.reset();
  // A loss that is no number any more is no loss below the target.
  CHECK_FALSE(time_to_target(target, {at(10, 0.5), at(20, 0.9, kNan)}));
  CHECK_FALSE(time_to_target(Target(), {at(10, 0.5)}));
}

TEST_CASE("one lucky evaluation does not reach a target that is to be held") {
  const std::vector<HistoryPoint> lucky = {at(10, 0.9), at(20, 0.7), at(30, 0.9), at(40, 0.95),
                                           at(50, 0.7)};
  CHECK(*time_to_target(accuracy(0.8, 1), lucky) == doctest::Approx(10));
  CHECK(*time_to_target(accuracy(0.8, 2), lucky) == doctest::Approx(25));
  CHECK_FALSE(time_to_target(accuracy(0.8, 3), lucky));
  CHECK(miss_text(accuracy(0.8, 3), lucky) ==
        "the target was reached after 10 s, but not held for 3 evaluations");
  CHECK(miss_text(accuracy(0.8, 2), lucky).empty());
  // The last evaluation has none behind it that could fail.
  CHECK(*time_to_target(accuracy(0.8, 2), {at(10, 0.7), at(20, 0.9)}) == doctest::Approx(15));
}

TEST_CASE("a crossing is where the definition has it, and a watch hears of it when it is held") {
  constexpr std::uint64_t kSeed = 2711;
  CAPTURE(kSeed);
  RandomStream random(RandomKey{.seed = kSeed});
  for (int round = 0; round < 2000; ++round) {
    CAPTURE(round);
    const Target target = accuracy(0.5, 1 + static_cast<std::uint64_t>(4 * random.uniform()));
    std::vector<HistoryPoint> history;
    const auto length = static_cast<std::size_t>(12 * random.uniform());
    for (std::size_t k = 0; k < length; ++k) {
      history.push_back(
          at(static_cast<double>(k), random.uniform() < 0.05 ? kNan : random.uniform()));
    }
    const auto wanted = by_definition(target, history);
    const auto found = crossing(target, history);
    REQUIRE(found.has_value() == wanted.has_value());
    if (found) {
      CHECK(found->point == *wanted);
      const double time = *time_to_target(target, history);
      CHECK(time <= history[*wanted].time_s);
      CHECK(time >= (*wanted == 0 ? 0 : history[*wanted - 1].time_s));
    }
    TargetWatch watch(target);
    std::optional<std::size_t> heard;
    for (std::size_t k = 0; k < length; ++k) {
      const bool held = watch.add(history[k]);
      heard = held && !heard ? std::optional(k) : heard;
    }
    if (heard) {
      CHECK(*heard == *wanted + target.sustained - 1);
    } else {
      CHECK((!wanted || *wanted + target.sustained > length));
    }
  }
}

}  // namespace sotto::test::target_test
