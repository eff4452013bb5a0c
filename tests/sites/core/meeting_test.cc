// What happens when two sites meet and one of them is not what it was: an older state, an older
// process, another list of peers, other settings.
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

#include "optim/cluster.h"
#include "sites/core/chaos.h"
#include "sites/core/site_network.h"

namespace sotto::test::meeting_test {

namespace {

SiteNetworkOptions pair_options() {
  SiteNetworkOptions options;
  options.sites = 2;
  options.same_start = false;
  return options;
}

/// Two sites or more after some rounds in step.
SiteNetwork running(SiteNetworkOptions options, Round rounds) {
  SiteNetwork network(std::move(options));
  network.connect_all();
  network.deliver_all();
  network.run_in_step(rounds);
  return network;
}

void put_back(SiteNetwork& network, std::size_t i, std::size_t writes_ago) {
  network.kill(i);
  auto& node = network.node(i);
  node.durable = node.history[node.history.size() - writes_ago];
  network.start(i);
}

/// Lets channels close, open and speak for some rounds without waiting for anybody.
void go_on(SiteNetwork& network, int rounds) {
  for (int k = 0; k < rounds; ++k) {
    network.connect_all();
    network.deliver_all();
    for (std::size_t i = 0; i < network.size(); ++i) {
      if (network.running(i) && network.site(i).alive()) {
        network.advance(i, false, true);
      }
    }
  }
}

}  // namespace

TEST_CASE("core: an older state is noticed by its first hello, and given up") {
  for (const std::size_t writes_ago : {1U, 2U, 5U}) {
    CAPTURE(writes_ago);
    SiteNetwork network = running(pair_options(), 10);
    const auto old = network.state(1).incarnation;
    put_back(network, 1, writes_ago);
    CHECK(network.state(1).incarnation == old);
    network.connect(0, 1);
    network.deliver_all();
    // It trains no more with what it has.
    CHECK_FALSE(network.site(1).try_begin(false));
    CHECK(network.state(1).incarnation != old);
    CHECK(network.state(1).resets == 1);
    CHECK(network.state(1).mass == 0);
    network.pump(1);
    go_on(network, 6);
    CHECK(network.peers(0)[0].up);
    CHECK(network.peers(1)[0].up);
    CHECK(network.state(1).round > 10);
    CHECK(network.state(0).minted == 1);
    CHECK(network.state(1).minted == 2);
  }
}

TEST_CASE("core: the site that stayed tells the one that went back, as sender and receiver") {
  // One way only: 0 tells 1.
  for (const std::size_t back : {0U, 1U}) {
    CAPTURE(back);
    SiteNetworkOptions options = pair_options();
    options.edge = [](std::size_t from, std::size_t /*to*/) { return from == 0; };
    SiteNetwork network = running(options, 10);
    put_back(network, back, 4);
    go_on(network, 6);
    CHECK(network.state(back).resets == 1);
    CHECK(network.state(1 - back).resets == 0);
    CHECK(network.peers(0)[0].up);
    CHECK(network.peers(0)[0].offences == 0);
    CHECK(network.peers(1)[0].offences == 0);
  }
}

TEST_CASE("core: a process that another has replaced is stopped when it comes back") {
  SiteNetworkOptions options = pair_options();
  options.sites = 3;
  SiteNetwork network = running(options, 6);
  // Suspended: its channels break, and another process starts from what it wrote.
  for (const std::size_t peer : {0U, 1U}) {
    network.disconnect(2, peer);
  }
  std::unique_ptr<sites::Site> suspended = std::move(network.node(2).site);
  network.start(2);
  go_on(network, 5);
  CHECK(network.state(2).life == 2);
  const auto healthy = network.state(2).incarnation;

  // It resumes, and takes the channels over.
  std::swap(network.node(2).site, suspended);
  for (const std::size_t peer : {0U, 1U}) {
    suspended->peer_down(network.place(2, peer));
    network.disconnect(2, peer);
    network.connect(2, peer);
  }
  network.deliver_all();
  CHECK(network.site(2).alive().fault() == Fault::unexpected);
  CHECK(network.site(2).released().empty());
  for (const std::size_t peer : {0U, 1U}) {
    CHECK(network.peers(peer)[network.place(peer, 2)].offences == 0);
    network.disconnect(2, peer);
  }

  std::swap(network.node(2).site, suspended);
  go_on(network, 5);
  CHECK(network.site(2).alive());
  CHECK(network.state(2).incarnation == healthy);
  CHECK(network.peers(0)[network.place(0, 2)].up);
}

TEST_CASE("core: a replaced process does not push its successor out where the state is gone") {
  SiteNetworkOptions options = pair_options();
  options.sites = 3;
  SiteNetwork network = running(options, 6);
  const auto lose = [&](std::size_t i) {
    network.kill(i);
    network.node(i).durable.clear();
    network.start(i);
    go_on(network, 5);
  };
  for (const std::size_t peer : {0U, 1U}) {
    network.disconnect(2, peer);
  }
  // Suspended, replaced; its successor loses its state, so that it is another incarnation. Then 1
  // loses its own, and with it all that it knew of those before.
  std::unique_ptr<sites::Site> suspended = std::move(network.node(2).site);
  lose(2);
  lose(1);
  const auto present = network.state(2).incarnation;
  REQUIRE(network.peers(1)[network.place(1, 2)].incarnation == present);

  // It resumes, and has the channel to 1 again and again; to 0 it gets none.
  for (int meeting = 0; meeting < 3; ++meeting) {
    std::swap(network.node(2).site, suspended);
    if (meeting == 0) {
      for (const std::size_t peer : {0U, 1U}) {
        suspended->peer_down(network.place(2, peer));
        network.disconnect(2, peer);
      }
    }
    network.connect(2, 1);
    network.deliver_all();
    CHECK(network.peers(1)[network.place(1, 2)].incarnation == present);
    CHECK(network.peers(1)[network.place(1, 2)].offences == 0);
    network.disconnect(2, 1);
    std::swap(network.node(2).site, suspended);
  }
  go_on(network, 5);
  CHECK(network.site(2).alive());
  CHECK(network.state(2).incarnation == present);
  CHECK(network.peers(1)[network.place(1, 2)].up);
  CHECK(network.peers(2)[network.place(2, 1)].up);
}

TEST_CASE("core: one liar among two peers does not stop a site, nor reset what has agreed") {
  for (const auto reason : {sites::RefusalReason::stale, sites::RefusalReason::already_running}) {
    SiteNetworkOptions options = pair_options();
    options.sites = 3;
    SiteNetwork network = running(options, 3);
    const auto incarnation = network.state(0).incarnation;
    network.queue(1, 0).push_back(encode(sites::Refusal{.reason = reason, .text = "go away"}));
    network.deliver_all();
    CHECK(network.site(0).alive());
    go_on(network, 3);
    CHECK(network.state(0).incarnation == incarnation);
    CHECK(network.state(0).resets == 0);
    CHECK(network.peers(0)[network.place(0, 2)].up);
  }
}

TEST_CASE("core: one liar does not stop a site while the others are away or have said nothing") {
  SiteNetworkOptions options = pair_options();
  options.sites = 3;
  SiteNetwork network = running(options, 3);
  for (const bool other_has_greeted : {false, true}) {
    CAPTURE(other_has_greeted);
    network.kill(0);
    network.start(0);
    if (other_has_greeted) {
      network.connect(0, 2);
      (void)network.deliver(2, 0);
    }
    network.connect(0, 1);
    (void)network.deliver(1, 0);
    const PeerState liar = network.peers(0)[network.place(0, 1)];
    REQUIRE(liar.up);
    network.queue(1, 0) = {encode(sites::Receipt{.incarnation = network.state(0).incarnation,
                                                 .applied = liar.receipts,
                                                 .round = liar.round,
                                                 .own_steps = 1}),
                           encode(sites::Refusal{.reason = sites::RefusalReason::already_running,
                                                 .text = "a newer process"})};
    (void)network.deliver(1, 0);
    (void)network.deliver(1, 0);
    CHECK_FALSE(network.peers(0)[network.place(0, 1)].up);
    CHECK(network.site(0).alive());
  }
}

TEST_CASE("core: other settings are refused, and the refusal says so") {
  SiteNetwork network(pair_options());
  SiteSetup other = network.setup(1);
  other.agreement[7] = std::byte{1};
  other.settings = "lr=0.5\n";
  network.node(1).site = std::make_unique<sites::Site>(std::move(other));
  network.connect(0, 1);
  network.deliver_all();
  for (const std::size_t i : {0U, 1U}) {
    CHECK_FALSE(network.peers(i)[0].up);
    CHECK(network.peers(i)[0].refused.has_value());
    CHECK(network.peers(i)[0].offences == 0);
    CHECK(network.peers(i)[0].trouble.find("settings") != std::string::npos);
    CHECK(network.peers(i)[0].settings == (i == 0 ? "lr=0.5\n" : ""));
    CHECK(network.site(i).complete());
  }
}

TEST_CASE("core: both learn the other's settings, also who was heard before it was greeted") {
  SiteNetwork network(pair_options());
  for (const std::size_t i : {0U, 1U}) {
    SiteSetup setup = network.setup(i);
    setup.agreement[7] = static_cast<std::byte>(i);
    setup.settings = i == 0 ? "lr=0.1\n" : "lr=0.5\n";
    network.node(i).site = std::make_unique<sites::Site>(std::move(setup));
    network.site(i).peer_up(0);
  }
  const auto pass = [&](std::size_t from, std::size_t to) {
    for (const auto& released : network.site(from).released()) {
      CHECK(network.site(to).receive(0, released.bytes()).ok());
    }
  };
  pass(0, 1);  // the other takes back its greeting, and refuses
  pass(1, 0);
  pass(0, 1);
  CHECK(network.peers(0)[0].settings == "lr=0.5\n");
  CHECK(network.peers(1)[0].settings == "lr=0.1\n");
  CHECK(network.site(0).released().empty());
  CHECK(network.site(1).released().empty());
}

TEST_CASE("core: who is forgotten and trusted again is in touch again, at any moment") {
  for (const auto exchange : {sites::MixingKind::push_sum, sites::MixingKind::gossip}) {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      CAPTURE(seed);
      SiteNetworkOptions options = pair_options();
      options.sites = 3;
      options.exchange = exchange;
      Chaos chaos(options, seed);
      chaos.run(60 + static_cast<int>(seed % 40), Faults::crashes);
      SiteNetwork& network = chaos.network;
      if (!network.running(0)) {
        network.start(0);
      }
      const double before = network.state(0).written_off;
      const double under_way = network.peers(0)[network.place(0, 2)].under_way;
      network.disconnect(0, 2);
      network.site(0).update_peers({{.name = "site-1"}});
      CHECK(network.site(0).peers().size() == 1);
      CHECK(network.state(0).written_off == doctest::Approx(before + under_way));
      if (seed % 2 == 0) {
        network.write(0);  // it may remember over a restart, too
        network.site(0).update_peers({{.name = "site-1"}, {.name = "site-2"}});
      } else {
        network.write(0);
        network.kill(0);
        network.start(0);
      }
      for (std::size_t i = 0; i < network.size(); ++i) {
        if (!network.running(i)) {
          network.start(i);
        }
      }
      go_on(network, 12);
      for (std::size_t i = 0; i < network.size(); ++i) {
        CHECK(network.state(i).resets == 0);
        for (const PeerState& peer : network.peers(i)) {
          CHECK(peer.up);
          CHECK(peer.offences == 0);
          CHECK(peer.applied > 0);
        }
      }
    }
  }
}

TEST_CASE("core: a late site begins with a neighbour's model and round") {
  SiteNetworkOptions options = pair_options();
  options.sites = 3;
  SiteNetwork network(options);
  network.connect(0, 1);
  network.deliver_all();
  for (int k = 0; k < 5; ++k) {
    for (const std::size_t i : {0U, 1U}) {
      network.advance(i, true, true);
    }
    network.deliver_all();
    for (const std::size_t i : {0U, 1U}) {
      network.advance(i, true);
    }
  }
  CHECK_FALSE(network.site(2).try_begin(false));
  network.connect(0, 2);
  const std::vector<float> model(network.site(0).parameters().begin(),
                                 network.site(0).parameters().end());
  network.deliver_all();
  CHECK_FALSE(network.site(2).try_begin(false));  // site 1 may give one, too
  CHECK(network.site(2).try_begin(true));
  CHECK(same_bits(network.site(2).parameters(), model));
  CHECK(network.state(2).round == 5);
  CHECK(network.state(2).mass == 1);
  CHECK(network.state(2).minted == 1);
}

TEST_CASE("core: a site that gets no answer waits, and then begins with the initial model") {
  SiteNetwork network(pair_options());
  CHECK_FALSE(network.site(0).try_begin(false));
  network.connect(0, 1);
  network.deliver_all();
  CHECK(network.site(0).try_begin(false));  // all are there, and none has more
  SiteNetwork alone(pair_options());
  CHECK_FALSE(alone.site(0).try_begin(false));
  CHECK(alone.site(0).try_begin(true));
  CHECK(alone.state(0).mass == 1);
}

TEST_CASE("core: setups that cannot work are refused") {
  SiteNetwork network(pair_options());
  const auto refused = [&](auto change) {
    SiteSetup setup = network.setup(0);
    change(setup);
    CHECK_THROWS_AS(sites::Site(std::move(setup)), Error);
  };
  refused([](SiteSetup& setup) { setup.incarnation = 0; });
  refused([](SiteSetup& setup) { setup.window = 0; });
  refused([](SiteSetup& setup) { setup.mass_cap = std::nan(""); });
  refused([](SiteSetup& setup) { setup.consensus_stepsize = 1.5; });
  refused([](SiteSetup& setup) { setup.peers.push_back(setup.peers[0]); });
  refused([](SiteSetup& setup) { setup.peers[0].name.clear(); });
  refused([](SiteSetup& setup) { setup.rule = "clipped:auto"; });
  refused([](SiteSetup& setup) {
    setup.exchange = sites::MixingKind::gossip;
    setup.peers[0].tells = false;
  });
  refused([](SiteSetup& setup) {
    setup.exchange = sites::MixingKind::gossip;
    setup.rule = "no-such-rule";
  });
  refused([](SiteSetup& setup) {
    setup.exchange = sites::MixingKind::gossip;
    setup.rule = "clipped:auto";
    setup.compressor = make_compressor("topk:0.1");
  });
  refused([](SiteSetup& setup) { setup.compressor = make_compressor("randk:0.1"); });
  refused([](SiteSetup& setup) {
    setup.step_rule = make_step_rule({.rule = "quasi-global", .momentum = 0.9});
  });
}

}  // namespace sotto::test::meeting_test
