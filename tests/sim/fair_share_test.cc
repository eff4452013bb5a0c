#include <sotto/sim/network/fair_share.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>

namespace sotto::test::fair_share_test {

TEST_CASE("two flows share a link, and the one with a narrower link leaves its rest to the other") {
  const std::vector<double> capacities = {100, 30};
  FairShare share(capacities);
  const auto narrow = share.add_flow(std::vector<Crossing>{{0, 1}, {1, 1}});
  const auto wide = share.add_flow(std::vector<Crossing>{{0, 1}});
  share.start(wide);
  CHECK(share.settle().size() == 1);
  CHECK(share.rate(wide) == 100);
  share.start(narrow);
  CHECK(share.settle().size() == 2);
  CHECK(share.rate(narrow) == doctest::Approx(30));
  CHECK(share.rate(wide) == doctest::Approx(70));
  share.set_capacity(1, 80);
  share.settle();
  CHECK(share.rate(narrow) == doctest::Approx(50));
  CHECK(share.rate(wide) == doctest::Approx(50));
  share.stop(wide);
  share.settle();
  CHECK(share.rate(narrow) == doctest::Approx(80));
}

TEST_CASE("weights divide a link, and a flow takes no more than its bound") {
  FairShare share(std::vector<double>{90});
  const auto light = share.add_flow(std::vector<Crossing>{{0, 1}}, 1);
  const auto heavy = share.add_flow(std::vector<Crossing>{{0, 1}}, 2);
  const auto bound = share.add_flow(std::vector<Crossing>{{0, 1}}, 7, 6);
  share.start(light);
  share.start(heavy);
  share.settle();
  CHECK(share.rate(light) == doctest::Approx(30));
  CHECK(share.rate(heavy) == doctest::Approx(60));
  share.start(bound);
  share.settle();
  CHECK(share.rate(bound) == doctest::Approx(6));
  CHECK(share.rate(light) == doctest::Approx(28));
  CHECK(share.rate(heavy) == doctest::Approx(56));
}

TEST_CASE("at every event rates are max-min fair, and no link is above its capacity") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = Purpose::test});
    const auto links = 2 + random.below(seed % 2 == 0 ? 12 : 60);
    std::vector<double> capacities(links);
    for (double& c : capacities) {
      c = random.below(20) == 0 ? 0 : 1e3 * std::pow(1e4, random.uniform());
    }
    FairShare share(capacities);
    std::vector<FlowId> flows;
    for (std::uint64_t f = 0; f < 2 * links; ++f) {
      std::vector<LinkId> ids(links);
      std::iota(ids.begin(), ids.end(), 0U);
      std::vector<Crossing> crossings;
      for (std::uint64_t k = 0; k < 1 + random.below(4) && k < links; ++k) {
        std::swap(ids[k], ids[k + random.below(links - k)]);
        crossings.push_back({ids[k], random.below(4) == 0 ? 0.05 + random.uniform() : 1.0});
      }
      const double weight = seed % 3 == 0 ? 0.1 + 10 * random.uniform() : 1;
      const double bound = random.below(5) == 0 ? 5e4 * random.uniform() : kUnlimited;
      flows.push_back(share.add_flow(crossings, weight, bound));
    }
    double worst = 0;
    for (int event = 0; event < 300; ++event) {
      for (std::uint64_t k = 0; k < 1 + random.below(3); ++k) {
        const FlowId flow = flows[random.below(flows.size())];
        if (random.below(15) == 0) {
          share.set_capacity(static_cast<LinkId>(random.below(links)), 1e6 * random.uniform());
        } else if (share.running(flow)) {
          share.stop(flow);
        } else {
          share.start(flow);
        }
      }
      share.settle();
      worst = std::max(worst, share.unfairness());
    }
    CHECK(worst < 1e-8);
  }
}

TEST_CASE("weights and usages that span twelve decades are shared fairly too") {
  double worst = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = Purpose::test});
    const auto links = 2 + random.below(10);
    std::vector<double> capacities(links);
    for (double& c : capacities) {
      c = 1e3 * std::pow(1e6, random.uniform());
    }
    FairShare share(capacities);
    std::vector<FlowId> flows;
    for (std::uint64_t f = 0; f < 4 * links; ++f) {
      const auto first = static_cast<LinkId>(random.below(links));
      const auto second = static_cast<LinkId>((first + 1 + random.below(links - 1)) % links);
      const double weight = std::pow(1e12, random.uniform());
      const double bound =
          random.below(5) == 0 ? 1e9 * std::pow(1e-12, random.uniform()) : kUnlimited;
      flows.push_back(
          share.add_flow(std::vector<Crossing>{{first, 1}, {second, 1}}, weight, bound));
    }
    for (int event = 0; event < 200; ++event) {
      const FlowId flow = flows[random.below(flows.size())];
      if (share.running(flow)) {
        share.stop(flow);
      } else {
        share.start(flow);
      }
      share.settle();
      worst = std::max(worst, share.unfairness());
    }
  }
  MESSAGE("worst breach: ", worst);
  CHECK(worst < 1e-9);
}

}  // namespace sotto::test::fair_share_test
