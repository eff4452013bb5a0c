// Each rule on which safety or progress rests is needed: without it some schedule breaks a promise.
#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include "sites/epochs/epoch_play.h"

namespace sotto::test::epoch_mutants_test {

using namespace sotto::sites;

namespace {

/// The first of `most` schedules that breaks a promise, and which; empty: none does.
std::string broken(const EpochRules& rules, std::uint64_t most, bool remember = true) {
  for (std::uint64_t seed = 0; seed < most; ++seed) {
    auto options = EpochPlay::options_for(seed, rules);
    options.founders_remember = remember;
    EpochPlay play(options);
    try {
      if (play.run() == EpochPlay::End::blocked) {
        return "seed " + std::to_string(seed) + ": blocked";
      }
    } catch (const Violated& violated) {
      return "seed " + std::to_string(seed) + ": " + violated.what();
    }
  }
  return {};
}

void check_needed(const std::string& rule, std::uint64_t most, const EpochRules& without) {
  const std::string how = broken(without, most);
  CAPTURE(rule);
  CHECK(!how.empty());
  MESSAGE(rule, ": ", how);
}

}  // namespace

TEST_CASE("epochs: no rule can be left out") {
  check_needed("more than half decide", 50, {.quorum_is_half = false});
  check_needed("of two halves one decides", 300, {.half_has_eldest = false});
  check_needed("who promises is frozen", 50, {.freezes = false});
  check_needed("all have the mean before one applies it", 300, {.all_have_mean = false});
  check_needed("an accepted value is taken over", 400, {.respects_accepted = false});
  check_needed("a mean that nobody is known to lack is carried", 400,
               {.carries_unless_one_lacks = false});
  check_needed("newcomers are exactly as far as the run", 400,
               {.admits_at_base = false, .enters_at_base = false});
  check_needed("the mean of the base is applied on entry", 400, {.applies_kept = false});
  check_needed("a chunk is sent once all of it is given", 50, {.sends_what_is_given = false});
  check_needed("founders that are members have one model", 50, {.founds_at_base = false});
  check_needed("a have for an applied step is answered", 600, {.answers_have = false});
}

TEST_CASE("epochs: founders that forget their votes may found two runs") {
  const std::string how = broken({}, 600, false);
  CHECK(!how.empty());
  MESSAGE(how);
}

}  // namespace sotto::test::epoch_mutants_test
