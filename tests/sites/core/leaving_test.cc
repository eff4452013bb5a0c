// Sites that leave for good: all that they hold goes to one heir, once, whatever dies meanwhile.
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "sites/core/mass_audit.h"
#include "sites/core/site_network.h"

namespace sotto::test::leaving_test {

namespace {

SiteNetworkOptions with_gradients(std::uint64_t seed, const std::string& compressor = "none") {
  SiteNetworkOptions options;
  options.seed = seed;
  options.mass = kMassStays;
  options.compressor = compressor;
  options.step = {.learning_rate = 0.05};
  options.gradient = [](std::size_t site, Round, std::span<const float> x, std::span<float> g) {
    for (std::size_t k = 0; k < x.size(); ++k) {
      g[k] = x[k] - static_cast<float>(site);
    }
  };
  return options;
}

std::string name_of(std::size_t site) { return "site-" + std::to_string(site); }

/// Tells all others that the site leaves.
void announce(SiteNetwork& network, std::size_t leaver) {
  for (std::size_t i = 0; i < network.size(); ++i) {
    if (i != leaver && network.running(i)) {
      network.site(i).set_draining({{.name = name_of(leaver), .leaves = true}});
    }
  }
}

/// What a driver does with a site that hands over: it is durable before it is sent.
bool hand_over(SiteNetwork& network, std::size_t leaver) {
  const bool done = network.site(leaver).hand_over();
  network.write(leaver);
  network.pump(leaver);
  return done;
}

/// Rounds of all but one, which is up and answers.
void run_others(SiteNetwork& network, std::size_t leaver, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (int half = 0; half < 2; ++half) {
      for (std::size_t i = 0; i < network.size(); ++i) {
        if (i != leaver && network.running(i)) {
          network.advance(i, false);
        }
      }
      network.deliver_all();
    }
  }
}

}  // namespace

TEST_CASE("leaving: the mass of all stays, the leaver holds none, and models do not jump") {
  for (const std::string compressor : {"none", "quant:8"}) {
    CAPTURE(compressor);
    SiteNetwork network(with_gradients(1, compressor));
    network.connect_all();
    network.deliver_all();
    network.run_in_step(10);
    MassAudit audit(network);
    announce(network, 2);
    // The leaver goes on until nothing comes any more.
    network.run_in_step(4);
    CHECK(network.site(2).quiet());
    const std::vector<float> before(network.node(0).x);
    audit.follow();
    REQUIRE(hand_over(network, 2));
    CHECK(network.site(2).has_left());
    CHECK(network.state(2).mass == 0);
    CHECK(network.state(2).undelivered > 0);
    CHECK_FALSE(network.site(2).delivered());
    CHECK_FALSE(hand_over(network, 2));
    audit.follow();
    network.deliver_all();
    run_others(network, 2, 3);
    audit.follow();
    CHECK(network.site(2).delivered());
    CHECK(network.state(2).undelivered == 0);
    CHECK(std::abs(audit.error()) < 1e-9);
    network.kill(2);
    run_others(network, 2, 10);
    CHECK(relative_distance(network.node(0).x, before) < 0.5);
  }
}

TEST_CASE("leaving: the heir is the least name that is up, and none where nobody is") {
  SiteNetwork network(with_gradients(2));
  network.connect_all();
  network.deliver_all();
  network.run_in_step(3);
  network.kill(0);
  announce(network, 3);
  run_others(network, 0, 0);
  const auto before = network.peers(3);
  REQUIRE(hand_over(network, 3));
  const auto after = network.peers(3);
  for (std::size_t k = 0; k < after.size(); ++k) {
    CHECK(after[k].sent - before[k].sent == (after[k].name == name_of(1) ? 1 : 0));
  }
  SiteNetwork lonely(with_gradients(3));
  lonely.connect_all();
  lonely.deliver_all();
  lonely.run_in_step(3);
  for (const std::size_t i : std::set<std::size_t>{0, 1, 2}) {
    lonely.kill(i);
  }
  CHECK_FALSE(hand_over(lonely, 3));
  CHECK(lonely.state(3).mass > 0);
}

TEST_CASE(
    "leaving: an heir that dies before it has written gets the parcel again, and applies it once") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = Purpose::faults});
    SiteNetwork network(with_gradients(seed));
    network.connect_all();
    network.deliver_all();
    network.run_in_step(2 + random.below(5));
    MassAudit audit(network);
    const auto follow = [&] { audit.follow(); };
    announce(network, 3);
    network.run_in_step(4);
    follow();
    REQUIRE(hand_over(network, 3));
    follow();
    // The heir, site 0, dies at any moment, and comes back as it last wrote itself.
    for (int deaths = 0; deaths < 3; ++deaths) {
      for (std::uint64_t k = random.below(12); k > 0; --k) {
        const auto pairs = network.loaded();
        if (!pairs.empty() && random.below(2) == 0) {
          const auto [from, to] = pairs[random.below(pairs.size())];
          CHECK(network.deliver(from, to).ok());
        } else {
          network.advance(random.below(3), false);
        }
        follow();
      }
      network.kill(0);
      network.start(0);
      follow();
      network.connect_all();
      announce(network, 3);
      network.deliver_all();
      follow();
      CHECK(std::abs(audit.error()) < 1e-9);
    }
    for (int round = 0; round < 8; ++round) {
      run_others(network, 3, 1);
      follow();
    }
    CHECK(network.site(3).delivered());
    CHECK(network.state(3).mass == 0);
    CHECK(std::abs(audit.error()) < 1e-9);
  }
}

TEST_CASE("leaving: a silent heir keeps its place, and one that begins anew gives way to another") {
  SiteNetwork network(with_gradients(5));
  network.connect_all();
  network.deliver_all();
  network.run_in_step(5);
  announce(network, 3);
  network.run_in_step(4);
  const double held = network.state(3).mass;
  const std::vector<float> model(network.node(3).x);
  REQUIRE(hand_over(network, 3));
  network.kill(0);
  run_others(network, 3, 5);
  CHECK_FALSE(hand_over(network, 3));  // it may have applied it, and written
  CHECK(network.state(3).undelivered == doctest::Approx(held));
  network.node(0).durable.clear();
  network.start(0);
  network.connect_all();
  network.deliver_all();
  CHECK_FALSE(network.site(3).has_left());
  CHECK(network.state(3).mass == doctest::Approx(held));
  CHECK(relative_distance(network.node(3).x, model) < 1e-6);
  REQUIRE(hand_over(network, 3));
  network.deliver_all();
  run_others(network, 3, 4);
  CHECK(network.site(3).delivered());
}

TEST_CASE("leaving: an heir that leaves the list before its receipt has not got the parcel") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = Purpose::faults});
    SiteNetwork network(with_gradients(seed));
    network.connect_all();
    network.deliver_all();
    network.run_in_step(3 + random.below(5));
    announce(network, 3);
    network.run_in_step(4);
    const double held = network.state(3).mass;
    REQUIRE(hand_over(network, 3));
    network.kill(0);
    run_others(network, 3, static_cast<int>(random.below(4)));
    sites::Site& leaver = network.site(3);
    CHECK(leaver.heir() == name_of(0));
    leaver.update_peers({{.name = name_of(1)}, {.name = name_of(2)}});
    CHECK_FALSE(leaver.delivered());
    CHECK(network.state(3).undelivered == doctest::Approx(held));
    // It is listed again, and the parcel is no more.
    leaver.update_peers({{.name = name_of(0)}, {.name = name_of(1)}, {.name = name_of(2)}});
    CHECK_FALSE(leaver.delivered());
    CHECK(network.state(3).undelivered == doctest::Approx(held));
  }
}

TEST_CASE("leaving: a leaver that is started again delivers what it had handed over") {
  SiteNetwork network(with_gradients(6));
  network.connect_all();
  network.deliver_all();
  network.run_in_step(5);
  announce(network, 3);
  network.run_in_step(4);
  MassAudit audit(network);
  REQUIRE(hand_over(network, 3));
  network.kill(3);
  network.start(3);
  audit.follow();
  CHECK(network.state(3).mass == 0);
  network.connect_all();
  network.deliver_all();
  run_others(network, 3, 4);
  audit.follow();
  CHECK(std::abs(audit.error()) < 1e-9);
  const auto peers = network.peers(3);
  CHECK(peers[0].under_way == 0);
  CHECK(peers[0].receipts == peers[0].sent);
}

TEST_CASE("leaving: what a parcel may not hold is taken away, and with gossip nothing is given") {
  SiteNetworkOptions options = with_gradients(7);
  options.mass.parcel = 0.25;
  options.mass.most = 1024;
  SiteNetwork network(options);
  network.connect_all();
  network.deliver_all();
  network.run_in_step(3);
  announce(network, 3);
  network.run_in_step(4);
  MassAudit audit(network);
  REQUIRE(hand_over(network, 3));
  audit.follow();
  CHECK(network.state(3).undelivered <= 0.25);
  CHECK(std::abs(audit.error()) < 1e-9);
  SiteNetworkOptions gossip = with_gradients(8);
  gossip.exchange = sites::MixingKind::gossip;
  SiteNetwork copies(gossip);
  copies.connect_all();
  copies.deliver_all();
  copies.run_in_step(3);
  CHECK_FALSE(hand_over(copies, 3));
}

TEST_CASE("leaving: an edge that is drained before it goes writes nothing off") {
  for (const bool drained : {false, true}) {
    CAPTURE(drained);
    SiteNetwork network(with_gradients(7));
    network.connect_all();
    network.deliver_all();
    network.run_in_step(10);
    const std::vector<std::size_t> ends = {0, 1};
    if (drained) {
      for (const std::size_t end : ends) {
        network.site(end).set_draining({{.name = name_of(1 - end)}});
      }
      network.run_in_step(3);
    } else {
      network.train(0);  // its parcels are under way
    }
    for (const std::size_t end : ends) {
      std::vector<sites::SitePeer> others;
      for (const std::size_t peer : network.listed(end)) {
        if (peer != 1 - end) {
          others.push_back({.name = name_of(peer), .hears = true, .tells = true});
        }
      }
      network.site(end).update_peers(others);
    }
    CHECK((network.state(0).written_off + network.state(1).written_off > 0) == !drained);
  }
}

}  // namespace sotto::test::leaving_test
