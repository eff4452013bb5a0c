// The outer step rule of sites.
#include <sotto/sites/core/outer_step.h>

#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/bytes.h>

#include "sites/core/site_network.h"

namespace sotto::test::outer_step_test {

using sites::OuterStep;

namespace {

const StepRuleOptions kDiLoCo = {
    .rule = "sgd", .learning_rate = 0.7, .momentum = 0.9, .nesterov = true};

}  // namespace

TEST_CASE("core: an outer rule of rate 1 without a memory leaves what was mixed") {
  OuterStep outer({.rule = "sgd", .learning_rate = 1}, {}, 3, host_ops());
  outer.begin(std::vector<float>{1, 2, 3});
  const auto next = outer.step(0, std::vector<float>{4, 0, 3});
  CHECK(std::ranges::equal(next, std::vector<float>{4, 0, 3}));
}

TEST_CASE("core: an outer rule goes on from what was saved, and from what was kept") {
  OuterStep outer(kDiLoCo, {}, 2, host_ops());
  const auto round = [](OuterStep& one, Round number, float mixed) {
    const auto stepped = one.step(number, std::vector<float>{mixed, -mixed});
    REQUIRE(!stepped.empty());
    std::vector<float> next(stepped.begin(), stepped.end());
    one.arrived(next);
    return next;
  };
  outer.begin(std::vector<float>{1, -1});
  round(outer, 0, 2);
  ByteBuffer saved;
  outer.save(saved);
  OuterStep loaded(kDiLoCo, {}, 2, host_ops());
  ByteReader in(saved.bytes());
  REQUIRE(loaded.load(in).ok());
  CHECK(in.finished());
  outer.keep();
  const auto expected = round(outer, 1, 3);
  CHECK(round(loaded, 1, 3) == expected);
  CHECK(round(outer, 2, -5) != expected);
  outer.put_back();
  CHECK(round(outer, 1, 3) == expected);
  // Beginning anew it remembers nothing.
  outer.begin(std::vector<float>{1, -1});
  OuterStep fresh(kDiLoCo, {}, 2, host_ops());
  fresh.begin(std::vector<float>{1, -1});
  CHECK(round(outer, 0, 2) == round(fresh, 0, 2));
}

TEST_CASE("core: an outer step that is not finite is told, and damaged states are refused") {
  OuterStep outer(kDiLoCo, {}, 2, host_ops());
  outer.begin(std::vector<float>{3e38F, 0});
  CHECK(outer.step(0, std::vector<float>{-3e38F, 0}).empty());
  ByteBuffer saved;
  outer.save(saved);
  for (std::size_t length = 0; length + 1 < saved.bytes().size(); ++length) {
    ByteReader in(saved.bytes().first(length));
    OuterStep other(kDiLoCo, {}, 2, host_ops());
    CHECK_FALSE(other.load(in).ok());
  }
}

TEST_CASE("core: outer steps do not lengthen what a parcel may pull") {
  // A neighbour that stands far away, and pulls at the bound in every round.
  for (const auto exchange : {sites::MixingKind::push_sum, sites::MixingKind::gossip}) {
    test::SiteNetworkOptions options;
    options.sites = 2;
    options.dimension = 4;
    options.exchange = exchange;
    options.step = {.learning_rate = 0.01};
    options.outer_step = {.rule = "sgd", .learning_rate = 0.7, .momentum = 0.5, .nesterov = true};
    options.gradient = [](std::size_t, Round, std::span<const float>, std::span<float> g) {
      std::ranges::fill(g, 1.0F);
    };
    test::SiteNetwork network(options);
    std::ranges::fill(network.node(1).x, 1000.0F);
    network.connect_all();
    network.deliver_all();
    network.run_in_step(30);
    CHECK(network.state(0).round == 30);
    CHECK(network.state(0).longest_step == doctest::Approx(0.02).epsilon(0.01));
  }
}

}  // namespace sotto::test::outer_step_test
