// Which waits of a node of an all-reduce whose nodes come and go are told, and when.
#include <sotto/sites/elastic/elastic_wait_watch.h>

#include <chrono>
#include <optional>

#include <doctest/doctest.h>

namespace sotto::test::elastic_wait_watch_test {

namespace {

using Kind = ElasticWait::Kind;
using Time = ElasticWaitWatch::Time;

std::optional<SiteEvent::Kind> told(ElasticWaitWatch& watch, Kind kind, Time now) {
  const auto event = watch.follow({.kind = kind, .lost = {"b"}}, now);
  return event ? std::optional(event->kind) : std::nullopt;
}

}  // namespace

TEST_CASE("epoch waits: long ones are told once in a while, and their end once") {
  ElasticWaitWatch watch;
  constexpr Time kStep{50};
  int waits = 0;
  int ends = 0;
  Time now{0};
  const auto pass = [&](Kind kind, Time lasts) {
    for (const Time end = now + lasts; now < end; now += kStep) {
      const auto event = told(watch, kind, now);
      waits += event == SiteEvent::Kind::run_waits ? 1 : 0;
      ends += event == SiteEvent::Kind::run_goes_on ? 1 : 0;
    }
  };
  pass(Kind::none, Time(1'000));
  pass(Kind::quorum, ElasticWaitWatch::kTellAfter - kStep);  // an epoch's end
  pass(Kind::others, Time(1'000));
  CHECK(waits == 0);
  pass(Kind::quorum, ElasticWaitWatch::kTellAfter + ElasticWaitWatch::kTellAgain + kStep);
  CHECK(waits == 2);
  CHECK(ends == 0);
  pass(Kind::nodes, Time(1'000));  // those that are lost are out, and more are needed
  CHECK(ends == 0);
  pass(Kind::others, Time(1'000));
  CHECK(ends == 1);
  pass(Kind::none, Time(600'000));
  CHECK(waits == 2);
  CHECK(ends == 1);
}

TEST_CASE("epoch waits: a run that waits for newcomers again and again fills no log") {
  ElasticWaitWatch watch;
  int events = 0;
  constexpr Time kHour{3'600'000};
  for (Time now{0}; now < kHour; now += Time(50)) {
    const bool waits = now % Time(10'000) < Time(7'500);
    events += told(watch, waits ? Kind::newcomer : Kind::none, now) ? 1 : 0;
  }
  CHECK(events >= 2);
  CHECK(events <= 2 * (kHour / ElasticWaitWatch::kNewcomerAgain + 1));
}

}  // namespace sotto::test::elastic_wait_watch_test
