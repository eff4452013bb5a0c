// From the settings of a run whose nodes come and go to what a node does.
#include <sotto/study/train/roster_plan.h>

#include <chrono>

#include <doctest/doctest.h>

using namespace sotto;
using namespace sotto::study;

TEST_CASE("a run by roster has the timeout that was given, also that of other runs") {
  TrainOptions options;
  options.task = "digits,train=100,test=20";
  options.model = "softmax";
  options.algorithm = "allreduce";
  RosterSettings roster;
  roster.nodes = "1:2";
  roster.seeds = "127.0.0.1:9";
  roster.name = "a";
  const auto usual = make_roster_plan(options, {"algorithm"}, roster);
  REQUIRE(usual.epochs);
  CHECK(usual.epochs->timeout == EpochOptions().timeout);
  // What the program's help shows as a default counts where somebody says it.
  options.timeout_s = TrainOptions().timeout_s;
  const auto given = make_roster_plan(options, {"algorithm", "timeout"}, roster);
  REQUIRE(given.epochs);
  CHECK(given.epochs->timeout == std::chrono::seconds(60));
  CHECK(given.epochs->timeout != EpochOptions().timeout);

  options.algorithm = "pushsum";
  CHECK(make_roster_plan(options, {"algorithm"}, roster).run.timeout == std::chrono::seconds(10));
  CHECK(make_roster_plan(options, {"algorithm", "timeout"}, roster).run.timeout ==
        std::chrono::seconds(60));
}
