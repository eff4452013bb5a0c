// Sites that are rounds or models apart: they keep pace and find together again, and what one sends
// to another that does not answer stays bounded.
#include <cmath>
#include <cstddef>
#include <random>
#include <span>

#include <doctest/doctest.h>

#include <sotto/sites/core/conduct/lead.h>

#include "sites/core/site_network.h"
#include "support/seed.h"

namespace sotto::test::lead_test {

namespace {

/// Two sites with targets 1 and 2.
SiteNetworkOptions two_targets() {
  SiteNetworkOptions options;
  options.sites = 2;
  options.dimension = 4;
  options.step.learning_rate = 0.05;
  options.gradient = [](std::size_t site, Round, std::span<const float> x, std::span<float> g) {
    for (std::size_t k = 0; k < x.size(); ++k) {
      g[k] = x[k] - static_cast<float>(site + 1);
    }
  };
  return options;
}

/// One round of a site that is connected to nobody.
void round_alone(SiteNetwork& network, std::size_t i) {
  network.advance(i, true, true);
  network.advance(i, true, true);
}

}  // namespace

TEST_CASE("the lead that a neighbour is allowed shrinks while it is waited for, and then only") {
  constexpr Round kNear = 2;
  sites::Lead lead;
  lead.meet(2, kNear);
  CHECK(lead.allowed() == 0);  // it catches up while the site waits
  lead.meet(100, kNear);
  CHECK(lead.allowed() == 100);
  lead.note(60, true);
  CHECK(lead.allowed() == 60);
  lead.note(80, true);  // patience was over
  CHECK(lead.allowed() == 60);
  lead.note(90, false);
  CHECK(lead.allowed() == 90);
  lead.note(0, true);
  CHECK(lead.allowed() == 0);
}

TEST_CASE("core: a silent neighbour is given up once, whatever the slack") {
  for (const Round slack : {0U, 1U, 4U, 32U}) {
    CAPTURE(slack);
    SiteNetworkOptions options = two_targets();
    options.slack = slack;
    options.window = slack + 2;
    SiteNetwork network(options);
    network.connect(0, 1);
    network.deliver_all();
    network.run_in_step(3);
    int patiences = 0;
    for (int round = 0; round < 2000; ++round) {
      network.advance(0, true);
      REQUIRE(network.node(0).phase == SiteNetwork::Phase::offered);
      patiences += network.site(0).complete() ? 0 : 1;
      network.advance(0, false);
    }
    CHECK(patiences == sites::Punctuality::kPatient);
  }
}

TEST_CASE("core: a peer that meets a newcomer in its first round is as far behind as it is") {
  SiteNetworkOptions options = two_targets();
  options.sites = 3;
  SiteNetwork network(options);
  for (int round = 0; round < 100; ++round) {
    round_alone(network, 0);
  }
  round_alone(network, 1);
  network.connect(0, 2);
  network.deliver_all();
  REQUIRE(network.site(2).try_begin(true));
  network.connect(1, 2);
  network.deliver_all();
  for (int turn = 0; turn < 20; ++turn) {
    for (const std::size_t i : {0U, 1U, 2U}) {
      network.advance(i, true);
    }
    network.deliver_all();
    for (const std::size_t i : {0U, 1U, 2U}) {
      network.advance(i, true);
    }
    network.deliver_all();
  }
  CHECK(network.state(2).round >= 110);  // it has waited for no round that does not come
  CHECK(network.peers(2)[network.place(2, 1)].waited_for);
}

TEST_CASE("core: two sites that meet rounds apart go on side by side") {
  const std::uint64_t seed = drawn_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const auto alone = std::uniform_int_distribution<Round>(4, 3000)(random);
  SiteNetwork network(two_targets());
  for (Round round = 0; round < alone; ++round) {
    round_alone(network, 0);
  }
  round_alone(network, 1);
  network.connect(0, 1);
  network.deliver_all();
  const Round first = network.state(0).round;
  const Round second = network.state(1).round;
  REQUIRE(first - second == alone - 1);
  for (int turn = 0; turn < 400; ++turn) {
    // Site 0 is given many turns for each of site 1's.
    const auto turns = std::uniform_int_distribution<int>(1, 50)(random);
    for (int k = 0; k < turns; ++k) {
      network.advance(0, true);
    }
    network.deliver_all();
    network.advance(1, true);
    network.deliver_all();
    CHECK(network.state(0).round - first <= network.state(1).round - second + 1);
  }
  CHECK(network.state(1).round - second >= 190);
  // Each alone would be at its target, 1 from the other's.
  CHECK(std::abs(network.site(0).parameters()[0] - network.site(1).parameters()[0]) < 0.5F);
}

TEST_CASE("core: a newcomer waits for its giver though the hello is older than the model") {
  SiteNetworkOptions options = two_targets();
  options.sites = 3;
  SiteNetwork network(options);
  network.connect(0, 1);
  network.deliver_all();
  network.connect(0, 2);  // the hellos are under way
  constexpr Round kRounds = 5;
  for (Round round = 0; round < kRounds; ++round) {
    for (int half = 0; half < 2; ++half) {
      for (const std::size_t i : {0U, 1U}) {
        network.advance(i, true, true);
      }
      for (const auto& [from, to] : {std::pair{0U, 1U}, std::pair{1U, 0U}}) {
        while (!network.queue(from, to).empty()) {
          CHECK(network.deliver(from, to).ok());
        }
      }
    }
  }
  REQUIRE(network.state(0).round == kRounds);
  network.deliver_all();
  network.advance(2, true, true);
  REQUIRE(network.node(2).phase == SiteNetwork::Phase::offered);
  CHECK(network.state(2).round == kRounds);
  CHECK_FALSE(network.site(2).complete());
}

TEST_CASE("core: two sites that meet while both have offered do not wait for each other's round") {
  for (const bool newcomers : {true, false}) {
    CAPTURE(newcomers);
    SiteNetwork network(two_targets());
    if (!newcomers) {
      round_alone(network, 0);
      round_alone(network, 1);
    }
    network.connect(0, 1);
    for (const std::size_t i : {0U, 1U}) {
      network.advance(i, true, true);  // its hello is under way, and the peer's has not come
      REQUIRE(network.node(i).phase == SiteNetwork::Phase::offered);
    }
    network.deliver_all();
    CHECK(network.site(0).complete());
    CHECK(network.site(1).complete());
    for (const std::size_t i : {0U, 1U}) {
      network.advance(i, true);
    }
    network.run_in_step(5);
    CHECK(network.peers(0).front().applied == 5);
  }
}

TEST_CASE("a neighbour that was in time for long is asked for less when it is late again") {
  sites::Punctuality punctuality;
  const auto rounds_until_waited_for = [&] {
    for (Round round = 0; round < sites::Punctuality::kPatient; ++round) {
      punctuality.note(false);
    }
    Round rounds = 0;
    for (; !punctuality.waited_for(); ++rounds) {
      punctuality.note(true);
      punctuality.note(false);  // of no account while it is not waited for
    }
    return rounds;
  };
  for (const Round times : {1U, 2U, 4U, 8U}) {
    CHECK(rounds_until_waited_for() == times * sites::Punctuality::kFirst);
  }
  for (Round round = 0; round < 2 * sites::Punctuality::kForgiven; ++round) {
    punctuality.note(true);
  }
  CHECK(rounds_until_waited_for() == 4 * sites::Punctuality::kFirst);
}

TEST_CASE("a neighbour that is late in many rounds is given up, and one that seldom is not") {
  for (const int in_time : {1, 2, 5, 8, 20}) {  // rounds for each in which it is late
    CAPTURE(in_time);
    sites::Punctuality punctuality;
    bool given_up = false;
    for (int round = 0; round < 1000; ++round) {
      punctuality.note(round % (in_time + 1) != 0);
      given_up = given_up || !punctuality.waited_for();
    }
    CHECK(given_up == (in_time < 8));
  }
}

TEST_CASE(
    "a neighbour may use up a twentieth of the time by being late, and a few patiences more") {
  struct Case {
    int in_time;     // rounds for each in which it is late
    double round_s;  // length of a round
    bool given_up;
  };
  constexpr double kPatience = 1.9;
  for (const Case& one :
       {Case{8, 0.1, true}, Case{8, 1, true}, Case{20, 0.1, true}, Case{300, 0.1, true},
        Case{450, 0.1, false}, Case{20, 2, false}, Case{40, 1, false}}) {
    CAPTURE(one.in_time);
    CAPTURE(one.round_s);
    sites::Punctuality punctuality;
    double late_s = 0;
    double all_s = 0;
    bool given_up = false;
    for (int round = 0; round < 100'000; ++round) {
      const bool in_time = round % (one.in_time + 1) != 0;
      const bool waits = punctuality.waited_for() && !in_time;
      const double waited = waits ? kPatience : 0;
      punctuality.note(in_time, {.lasted = one.round_s + waited, .waited = waited});
      late_s += waited;
      all_s += one.round_s + waited;
      given_up = given_up || !punctuality.waited_for();
    }
    CHECK(given_up == one.given_up);
    CHECK(late_s / all_s < 0.06);
  }
}

TEST_CASE("a loaded host that is late a few times close together is waited for") {
  const std::uint64_t seed = drawn_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  sites::Punctuality punctuality;
  // A hiccup of a patience now and then, a fiftieth of the time.
  std::geometric_distribution<int> between(1.0 / 600);
  for (int hiccups = 0; hiccups < 40; ++hiccups) {
    punctuality.note(false, {.lasted = 2, .waited = 1.9});
    for (int round = 30 + between(random); round > 0; --round) {
      punctuality.note(true, {.lasted = 0.15, .waited = 0.05});
    }
    REQUIRE(punctuality.waited_for());
  }
}

TEST_CASE("core: what waits for a peer that says nothing grows with the logarithm of the rounds") {
  SiteNetwork network(two_targets());
  network.connect(0, 1);
  network.deliver_all();
  constexpr int kRounds = 1 << 14;
  for (int round = 0; round < 2 * kRounds; ++round) {
    network.advance(0, false);
  }
  CHECK(network.state(0).round >= kRounds - 1);
  CHECK(network.queue(0, 1).size() <= network.options().window + 16 + 14);
  network.deliver_all();
  network.advance(1, true);  // it has heard how far the other is, and is heard at once
  network.deliver_all();
  network.advance(0, false);
  network.advance(0, false);
  network.deliver_all();
  CHECK(network.peers(1).front().round >= kRounds);
}

TEST_CASE("core: sites that trained apart until they hardly moved find together again") {
  const std::uint64_t seed = drawn_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (const auto exchange : {sites::MixingKind::push_sum, sites::MixingKind::gossip}) {
    for (int trial = 0; trial < 4; ++trial) {
      SiteNetworkOptions options = two_targets();
      options.exchange = exchange;
      SiteNetwork network(options);
      const auto alone = static_cast<Round>(
          std::pow(10.0, std::uniform_real_distribution<double>(2, 4.4)(random)));
      CAPTURE(alone);
      for (Round round = 0; round < alone; ++round) {
        round_alone(network, 0);
        round_alone(network, 1);
      }
      REQUIRE(std::abs(network.site(0).parameters()[0] - network.site(1).parameters()[0]) > 0.9F);
      network.connect(0, 1);
      network.deliver_all();
      for (int round = 0; round < 1500; ++round) {
        network.run_in_step(1);
        REQUIRE(network.peers(0).front().habit == sites::PeerHabit::none);
        REQUIRE(network.peers(1).front().habit == sites::PeerHabit::none);
      }
      for (const std::size_t i : {0U, 1U}) {
        CHECK(network.peers(i).front().blamed == 0);
        CHECK(std::abs(network.site(i).parameters()[0] - 1.5F) < 0.25F);
      }
    }
  }
}

}  // namespace sotto::test::lead_test
