// Users are told of parameters that had no gradient before Adam's variance was frozen.
#include <sotto/optim/frozen_adam/freeze_notice.h>

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "optim/cluster.h"

namespace sotto::test::freeze_notice_test {

namespace {

constexpr Round kFreeze = 3;

ParameterLayout tensors() {
  ParameterLayout layout;
  append_block(layout, "wte.weight", {2, 3});
  append_block(layout, "head.weight", {4});
  append_block(layout, "head.bias", {2});
  return layout;
}

/// Nothing for a row of wte.weight and one bias until round `first`.
GradientFunction late(Round first) {
  return [first](Rank rank, Round round, std::span<const float> /*x*/, std::span<float> g) {
    for (std::size_t k = 0; k < g.size(); ++k) {
      const bool waits = k < 3 || k == 11;
      g[k] = waits && round < first ? 0.0F : 0.5F + 0.1F * static_cast<float>(rank);
    }
  };
}

ClusterOptions options_of(const AlgorithmInfo& info) {
  return {.algorithm = std::string(info.name),
          .nodes = 4,
          .dimension = 12,
          .freeze_step = kFreeze,
          .layout = tensors()};
}

/// Rounds, or exchanges, after which no node's variance moves any more: nodes that gossip agree on
/// theirs for 3 more on a ring of 4.
Round rounds_until_frozen(const AlgorithmInfo& info) {
  return info.name == "onebit-adam-gossip" ? kFreeze + 3 : kFreeze;
}

const std::string kTold =
    "4 of 12 parameters had no gradient before Adam's variance was frozen (freeze_step 3): "
    "wte.weight (3 of 6), head.bias (1 of 2); those that get one now send it in full precision "
    "until they have a variance too, a few bytes each instead of a bit; where most of them are to "
    "learn, freeze later";

void run(Cluster& cluster, Round rounds, const GradientFunction& gradient) {
  const Status status = cluster.driver.run(rounds, gradient);
  CAPTURE(status.message());
  REQUIRE(status.ok());
}

}  // namespace

TEST_CASE("all nodes of all algorithms that freeze tell once, in the round of the freeze") {
  const auto freezing = freezing_algorithms();
  CHECK(freezing.size() == 5);
  for (const AlgorithmInfo* info : freezing) {
    for (const Round interval : {Round{1}, Round{2}}) {
      CAPTURE(std::string(info->name));
      CAPTURE(interval);
      ClusterOptions options = options_of(*info);
      options.communication_interval = interval;
      Cluster cluster(options);
      const Round frozen = interval * rounds_until_frozen(*info);
      const auto gradient = late(1000);
      for (Round round = 1; round <= frozen + 4; ++round) {
        run(cluster, 1, gradient);
        for (std::size_t node = 0; node < cluster.x.size(); ++node) {
          CAPTURE(node);
          const auto warnings = cluster.driver.node(node).take_warnings();
          REQUIRE(warnings.size() == (round == frozen ? 1 : 0));
          CHECK((warnings.empty() || warnings[0] == kTold));
        }
      }
    }
  }
}

TEST_CASE("where every parameter has a variance nothing is told") {
  for (const AlgorithmInfo* info : freezing_algorithms()) {
    CAPTURE(std::string(info->name));
    Cluster cluster(options_of(*info));
    run(cluster, 12, late(kFreeze - 1));
    CHECK(cluster.driver.node(0).take_warnings().empty());
  }
  // Adam whose variance never freezes.
  Cluster thawed({.algorithm = "zeroone-adam", .nodes = 2, .dimension = 12, .freeze_step = {}});
  run(thawed, 12, late(1000));
  CHECK(thawed.driver.node(0).take_warnings().empty());
}

TEST_CASE("1-bit Adam that finds its freeze by itself tells of the round that it found") {
  ClusterOptions options = options_of(algorithm_info("onebit-adam"));
  options.freeze_step = {};
  options.step = {.rule = "adam", .learning_rate = 0.01, .beta2 = 0.5};
  Cluster cluster(options);
  std::vector<std::string> told;
  Round rounds = 0;
  while (told.empty() && rounds < 100) {
    run(cluster, 1, late(1000));
    ++rounds;
    told = cluster.driver.node(0).take_warnings();
  }
  REQUIRE(told.size() == 1);
  CHECK(told[0].find("(freeze_step " + std::to_string(rounds) + ")") != std::string::npos);
}

TEST_CASE("a resumed run tells again what still holds") {
  for (const AlgorithmInfo* info : freezing_algorithms()) {
    const Round frozen = rounds_until_frozen(*info);
    for (const Round saved : {frozen - 1, frozen + 2}) {
      CAPTURE(std::string(info->name));
      CAPTURE(saved);
      Cluster whole(options_of(*info));
      run(whole, saved, late(1000));
      Cluster resumed(options_of(*info));
      for (std::size_t node = 0; node < whole.x.size(); ++node) {
        (void)whole.driver.node(node).take_warnings();
        ByteBuffer state;
        whole.driver.node(node).save(state);
        resumed.x[node] = whole.x[node];
        ByteReader in(state.bytes());
        REQUIRE(resumed.driver.node(node).load(in).ok());
      }
      run(whole, 2, late(1000));
      run(resumed, 2, late(1000));
      CHECK(resumed.x == whole.x);
      CHECK(resumed.driver.node(2).take_warnings() == std::vector{kTold});
    }
  }
}

TEST_CASE("of many tensors the largest are named, and the others counted") {
  ParameterLayout layout;
  std::vector<float> variance;
  for (std::size_t i = 1; i <= 7; ++i) {
    append_block(layout, "t" + std::to_string(i), {10});
    variance.insert(variance.end(), i, 0.0F);
    variance.insert(variance.end(), 10 - i, 1.0F);
  }
  const auto text = describe_zero_variance(layout, variance, 9);
  REQUIRE(text);
  CAPTURE(*text);
  CHECK(text->starts_with("28 of 70 parameters"));
  CHECK(
      text->find(": t7 (7 of 10), t6 (6 of 10), t5 (5 of 10), t4 (4 of 10) and 3 other tensors;") !=
      std::string::npos);
  variance[10] = 1;  // of t2, whose other zero stays
  std::fill(variance.begin(), variance.begin() + 10, 1.0F);
  std::fill(variance.begin() + 20, variance.begin() + 30, 1.0F);
  CHECK(describe_zero_variance(layout, variance, 9)->find("t4 (4 of 10) and 1 other tensor;") !=
        std::string::npos);
  std::fill(variance.begin(), variance.end(), 1e-30F);
  CHECK_FALSE(describe_zero_variance(layout, variance, 9));
  CHECK_FALSE(describe_zero_variance({}, {}, 9));
}

}  // namespace sotto::test::freeze_notice_test
