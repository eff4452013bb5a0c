// How many steps the rounds of a site have (sites/process/site_pace.h).
#include <limits>
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/sites/process/site_pace.h>

namespace sotto::test::site_pace_test {

namespace {

SiteOptions options_of(Round interval) {
  SiteOptions options{.security = {make_key_pair(), nullptr}};
  options.communication_interval = interval;
  return options;
}

/// A neighbour in this round since so many seconds, which takes 8 steps.
SitePeerReport neighbour(Round round, double age_s) {
  SitePeerReport report;
  report.site.up = report.site.tells_us = report.site.heard = true;
  report.site.round = round;
  report.site.own_steps = 8;
  report.round_age_s = age_s;
  return report;
}

}  // namespace

TEST_CASE("without a choice a round has H steps, with one so many") {
  SiteOptions options = options_of(8);
  CHECK(SitePace(options).steps() == 8);
  CHECK_FALSE(SitePace(options).adapts());
  options.own_steps = 3;
  CHECK(SitePace(options).steps() == 3);
  for (const Round refused : {Round{0}, Round{9}}) {
    options.own_steps = refused;
    CHECK_THROWS_WITH_AS(SitePace{options}, doctest::Contains("own_steps"), Error);
  }
  options.own_steps.reset();
  options.adapts_steps = true;
  options.slack = 1;
  CHECK_THROWS_WITH_AS(SitePace{options}, doctest::Contains("slack"), Error);
}

TEST_CASE("only neighbours that are heard and in step set a site's pace") {
  SiteOptions options = options_of(8);
  options.adapts_steps = true;
  constexpr Round kRound = 5;
  SitePeerReport unheard = neighbour(kRound + 1, 0);
  unheard.site.heard = false;  // it says that it tells us, and our list does not take it in
  SitePeerReport unknown = neighbour(kRound + 1, 0);
  unknown.site.own_steps = 0;
  const SitePeerReport before = neighbour(kRound + 3, 1e6);  // it came before the round began
  const SitePeerReport never = neighbour(kRound, 1e6);
  for (const SitePeerReport& one : {unheard, unknown, before, never}) {
    SitePace pace(options);
    for (int round = 0; round < 20; ++round) {
      pace.begin_round();
      pace.end_steps(8);
      pace.end_round(std::vector{one}, kRound);
      CHECK(pace.steps() == 8);
    }
  }
}

TEST_CASE("a round that was cut short measures nothing") {
  SiteOptions options = options_of(8);
  options.adapts_steps = true;
  SitePace pace(options);
  for (int round = 0; round < 20; ++round) {
    pace.begin_round();
    pace.end_steps(1);
    pace.end_round(std::vector{neighbour(1, 0)}, 0);
    CHECK(pace.steps() == 8);
  }
}

}  // namespace sotto::test::site_pace_test
