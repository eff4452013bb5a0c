// Scenarios drawn at random: each can be read, emulated and run, and a seed draws the same again.
#include <set>
#include <string>

#include <doctest/doctest.h>

#include <sotto/study/simulation/scenario_runs.h>

#include "bench/netlab/network/scenario_network.h"
#include "bench/netlab/prediction/drawn_scenario.h"
#include "bench/netlab/prediction/scenario_text.h"

namespace sotto::test::drawn_scenario_test {

using namespace sotto::netlab;

TEST_CASE("what a seed draws can be emulated, and differs from number to number") {
  constexpr std::uint64_t kSeed = 20261126;
  std::set<std::string> words;
  std::set<std::string> texts;
  bool changes = false;
  bool far = false;
  for (std::uint64_t number = 0; number < 60; ++number) {
    CAPTURE(kSeed);
    CAPTURE(number);
    const DrawnScenario drawn = draw_scenario(kSeed, number, 5);
    CAPTURE(drawn.text);
    CHECK(draw_scenario(kSeed, number, 5).text == drawn.text);
    const study::Scenario scenario = scenario_from(drawn.text);
    CHECK(scenario.task.rounds == 5);
    check_emulable(scenario);
    CHECK_NOTHROW((void)study::check_runs(scenario));
    words.insert(drawn.words);
    texts.insert(drawn.text);
    changes = changes || !scenario.changes.empty();
    far = far || !scenario.between.empty();
  }
  CHECK(texts.size() == 60);
  CHECK(words.size() > 12);
  CHECK(changes);
  CHECK(far);
}

TEST_CASE("trunks and losses come beside what a seed draws without them") {
  constexpr std::uint64_t kSeed = 20261130;
  bool oceans = false;
  bool sites = false;
  int lossy = 0;
  for (std::uint64_t number = 0; number < 40; ++number) {
    CAPTURE(kSeed);
    CAPTURE(number);
    const DrawnScenario plain = draw_scenario(kSeed, number, 5);
    const DrawnScenario drawn = draw_scenario(kSeed, number, 5, {.trunks = true, .losses = true});
    CAPTURE(drawn.text);
    CHECK(drawn.words == plain.words);
    CHECK(drawn.title.starts_with(plain.title));
    const study::Scenario without = scenario_from(plain.text);
    const study::Scenario with = scenario_from(drawn.text);
    CHECK(without.trunks.empty());
    CHECK(without.link.loss == 0);
    check_emulable(with);
    CHECK_NOTHROW((void)study::check_runs(with));
    CHECK(with.link.latency == without.link.latency);
    CHECK(with.hosts[0].up_bytes_per_s == without.hosts[0].up_bytes_per_s);
    for (const study::Trunk& trunk : with.trunks) {
      oceans = oceans || trunk.name == "ocean";
      sites = sites || trunk.name == "site";
    }
    CHECK(with.link.loss <= 0.03);
    lossy += with.link.loss >= 0.001 ? 1 : 0;
  }
  CHECK(oceans);
  CHECK(sites);
  CHECK(lossy > 15);
  CHECK(lossy < 40);
}

}  // namespace sotto::test::drawn_scenario_test
