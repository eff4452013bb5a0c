// Sites that take fewer steps in a round than others: what their rounds count, and how many steps
// they choose (sites/core/step_weighting.h, own_steps.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/sites/core/own_steps.h>

#include "sites/core/site_network.h"

namespace sotto::test::uneven_steps_test {

using sites::MixingKind;
using sites::OwnSteps;
using sites::StepWeighting;

namespace {

constexpr std::uint64_t kSeed = 91177;
constexpr std::size_t kSites = 4;
constexpr std::size_t kDimension = 5;
constexpr Round kInterval = 8;

/// Site i's loss is ½‖x − c_i‖².
std::vector<std::vector<float>> targets() {
  RandomStream drawn({.seed = kSeed});
  std::vector<std::vector<float>> all(kSites, std::vector<float>(kDimension));
  for (auto& target : all) {
    for (float& value : target) {
      value = static_cast<float>(3 * drawn.normal());
    }
  }
  return all;
}

SiteNetworkOptions options_of(MixingKind kind, StepWeighting weighting) {
  SiteNetworkOptions options;
  options.sites = kSites;
  options.dimension = kDimension;
  options.exchange = kind;
  options.window = sites::usual_window(kind);
  options.step = {.learning_rate = 0.005};
  options.communication_interval = kInterval;
  options.step_weighting = weighting;
  options.seed = kSeed;
  options.gradient = [all = targets()](std::size_t site, Round, std::span<const float> x,
                                       std::span<float> g) {
    for (std::size_t k = 0; k < x.size(); ++k) {
      g[k] = x[k] - all[site][k];
    }
  };
  return options;
}

/// The mean of all sites' models after so many rounds.
std::vector<float> mean_after(Round rounds, SiteNetworkOptions options) {
  SiteNetwork network(std::move(options));
  network.connect_all();
  network.deliver_all();
  network.run_in_step(rounds);
  std::vector<float> mean(kDimension);
  for (std::size_t i = 0; i < kSites; ++i) {
    for (std::size_t k = 0; k < kDimension; ++k) {
      mean[k] += network.node(i).x[k] / static_cast<float>(kSites);
    }
  }
  return mean;
}

/// Σ w_i c_i / Σ w_i, which minimizes Σ w_i f_i.
std::vector<float> minimum(const std::vector<double>& weights) {
  const auto all = targets();
  std::vector<float> x(kDimension);
  for (std::size_t k = 0; k < kDimension; ++k) {
    double sum = 0;
    double total = 0;
    for (std::size_t i = 0; i < kSites; ++i) {
      sum += weights[i] * static_cast<double>(all[i][k]);
      total += weights[i];
    }
    x[k] = static_cast<float>(sum / total);
  }
  return x;
}

Round steps_of(std::size_t site) { return std::vector<Round>{8, 1, 4, 2}.at(site); }

}  // namespace

TEST_CASE("sites of uneven steps settle where the loss is least that their weighting stands for") {
  CAPTURE(kSeed);
  const std::vector<float> by_work = minimum({8, 1, 4, 2});
  const std::vector<float> alike = minimum({1, 1, 1, 1});
  const double apart = sites::distance_between(by_work, alike);
  REQUIRE(apart > 0.3);
  for (const MixingKind kind :
       {MixingKind::push_sum, MixingKind::gossip, MixingKind::secure_mean}) {
    CAPTURE(sites::name_of(kind));
    for (const StepWeighting weighting : {StepWeighting::work, StepWeighting::equal}) {
      CAPTURE(sites::name_of(weighting));
      SiteNetworkOptions options = options_of(kind, weighting);
      options.own_steps = steps_of;
      const std::vector<float> x = mean_after(500, options);
      const bool work = weighting == StepWeighting::work;
      CHECK(sites::distance_between(x, work ? by_work : alike) < 0.1 * apart);
      CHECK(sites::distance_between(x, work ? alike : by_work) > 0.8 * apart);
    }
  }
}

TEST_CASE("where all sites take H steps the weighting changes no bit") {
  for (const MixingKind kind :
       {MixingKind::push_sum, MixingKind::gossip, MixingKind::secure_mean}) {
    CAPTURE(sites::name_of(kind));
    const auto work = mean_after(20, options_of(kind, StepWeighting::work));
    const auto equal = mean_after(20, options_of(kind, StepWeighting::equal));
    CHECK(std::ranges::equal(work, equal));
  }
}

TEST_CASE(
    "steps count as many as the site and its neighbours take in the mean, and alone as they are") {
  for (const MixingKind kind : {MixingKind::push_sum, MixingKind::gossip}) {
    CAPTURE(sites::name_of(kind));
    // The model of site 0 before and after its steps of the second round, when it knows the
    // others'.
    const auto moves = [&](std::size_t sites, StepWeighting weighting) {
      SiteNetworkOptions options = options_of(kind, weighting);
      options.sites = sites;
      options.own_steps = [](std::size_t site) -> Round { return site == 0 ? 2 : 6; };
      SiteNetwork network(options);
      network.connect_all();
      network.deliver_all();
      network.run_in_step(1);
      const std::vector<float> before = network.node(0).x;
      network.advance(0, true, true);
      return sites::distance_between(network.node(0).x, before);
    };
    CHECK(moves(1, StepWeighting::equal) == moves(1, StepWeighting::work));
    const double work = moves(3, StepWeighting::work);  // τ = (2 + 6 + 6) / 3
    CHECK(moves(3, StepWeighting::equal) == doctest::Approx(work * 7 / 3).epsilon(0.05));
  }
}

TEST_CASE("a site takes as many steps as fit into its neighbours' rounds") {
  RandomStream drawn({.seed = kSeed});
  for (int trial = 0; trial < 100; ++trial) {
    CAPTURE(kSeed);
    CAPTURE(trial);
    const Round most = 1 + drawn.below(64);
    const double others = 0.01 + drawn.uniform();
    const double step = 0.001 + 0.2 * drawn.uniform();
    OwnSteps own(most);
    CHECK(own.steps() == most);
    for (int round = 0; round < 10; ++round) {
      own.note(step, {others, others, others});
    }
    const auto fits = static_cast<Round>(others / step);
    CHECK(own.steps() == std::clamp<Round>(fits, (most + 7) / 8, most));
  }
}

TEST_CASE("one neighbour that sends at once, or never, does not set a site's steps") {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  OwnSteps own(32);
  for (int round = 0; round < 20; ++round) {
    own.note(0.1, {0, 1.65, 1.75});
  }
  CHECK(own.steps() == 16);
  for (int round = 0; round < 20; ++round) {
    own.note(0.1, {1.65, kNever, 1.05});
  }
  CHECK(own.steps() == 16);
  // One slow round among quick ones.
  own.note(5, {1.65, 1.65, 1.65});
  CHECK(own.steps() == 16);
  // Nobody heard: nothing is known.
  own.note(0.1, {});
  CHECK(own.steps() == 16);
  for (int round = 0; round < 20; ++round) {
    own.note(0.1, {kNever, kNever, 0});
  }
  CHECK(own.steps() == 32);
}

TEST_CASE("sites that all adapt go by the fastest, and by nobody's choice") {
  RandomStream drawn({.seed = kSeed});
  for (int trial = 0; trial < 60; ++trial) {
    CAPTURE(kSeed);
    CAPTURE(trial);
    const Round most = 16 + drawn.below(48);
    std::vector<double> step_s(2 + drawn.below(3));
    for (double& seconds : step_s) {
      seconds = 0.05 * (1 + 9 * drawn.uniform());
    }
    step_s.front() = 0.05;
    if (trial % 4 == 0) {
      std::ranges::fill(step_s, 0.05);
    }
    const double latency = (trial % 3 == 0 ? 1.5 : 0.02) * drawn.uniform();
    std::vector<OwnSteps> own(step_s.size(), OwnSteps(most));
    for (int round = 0; round < 200; ++round) {
      std::vector<Round> taken;
      for (const OwnSteps& site : own) {
        taken.push_back(site.steps());
      }
      for (std::size_t i = 0; i < own.size(); ++i) {
        std::vector<double> arrivals;
        for (std::size_t j = 0; j < own.size(); ++j) {
          const double share = static_cast<double>(most) / static_cast<double>(taken[j]);
          const double jitter = 0.02 * latency * drawn.uniform();
          if (j != i) {
            arrivals.push_back(share *
                               (static_cast<double>(taken[j]) * step_s[j] + latency + jitter));
          }
        }
        own[i].note(step_s[i], std::move(arrivals));
      }
    }
    CHECK(own.front().steps() == most);  // the fastest
    const Round least = (most + 7) / 8;
    for (std::size_t i = 1; i < own.size(); ++i) {
      // No fewer than fit into the fastest one's round.
      const double fits = static_cast<double>(most) * 0.05 / step_s[i];
      CHECK(own[i].steps() >= std::clamp<Round>(static_cast<Round>(fits), least, most));
    }
    if (own.size() <= 3) {  // each hears the fastest first
      const double fits = (static_cast<double>(most) * 0.05 + 1.02 * latency) / step_s.back();
      CHECK(own.back().steps() <=
            std::max(std::clamp<Round>(static_cast<Round>(fits) + 1, least, most), least));
    }
  }
}

}  // namespace sotto::test::uneven_steps_test
