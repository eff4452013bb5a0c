// The mean by secure sums among sites: what it computes, and that it goes on whatever dies.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/sites/core/conduct/punctuality.h>
#include <sotto/sites/core/message.h>

#include "optim/cluster.h"
#include "sites/core/chaos.h"
#include "sites/core/site_network.h"

namespace sotto::test::secure_mean_test {

namespace {

constexpr std::size_t kDimension = 24;

SiteNetworkOptions secure_mean_of(std::size_t sites, std::size_t colluders, std::uint64_t seed) {
  SiteNetworkOptions options;
  options.sites = sites;
  options.exchange = sites::MixingKind::secure_mean;
  options.sum = {.colluders = colluders};
  options.step = {.learning_rate = 0.1};
  options.window = 3;
  options.seed = seed;
  options.gradient = [](std::size_t site, Round round, std::span<const float> x,
                        std::span<float> g) {
    for (std::size_t k = 0; k < g.size(); ++k) {
      g[k] = x[k] - static_cast<float>((site + round + k) % 5);
    }
  };
  return options;
}

/// When the answers of one site about sums come to those who asked.
enum class Answers { prompt, late, never };

/// A round of the sites that run, in which `slow` answers so. Whether site 0 waits for it in the
/// end, when all else has come.
bool waits_for(SiteNetwork& network, std::size_t slow, Answers answers) {
  std::vector<std::pair<std::size_t, std::vector<std::byte>>> held;
  const auto hold = [&](std::size_t from, std::size_t to) {
    auto& queue = network.queue(from, to);
    for (auto at = queue.begin();
         from == slow && answers != Answers::prompt && at != queue.end();) {
      const auto message = sites::parse(*at, kDimension);
      REQUIRE(message.ok());
      if (!std::holds_alternative<sites::Masks>(*message)) {
        ++at;
        continue;
      }
      held.emplace_back(to, std::move(*at));
      at = queue.erase(at);
    }
    return !queue.empty();
  };
  const auto deliver = [&] {
    for (bool any = true; any;) {
      any = false;
      for (const auto& [from, to] : network.loaded()) {
        if (network.connected(from, to) && hold(from, to)) {
          any = true;
          CHECK(network.deliver(from, to).ok());
        }
      }
    }
  };
  const auto advance_all = [&] {
    for (std::size_t i = 0; i < network.size(); ++i) {
      if (network.running(i)) {
        network.advance(i, true);
      }
    }
    deliver();
  };
  advance_all();  // parcels
  advance_all();  // questions
  const auto awaited = network.site(0).awaited();
  const bool waits = std::ranges::find(awaited, network.place(0, slow)) != awaited.end();
  while (network.node(0).phase == SiteNetwork::Phase::offered) {
    network.advance(0, true);
  }
  for (std::size_t i = 1; i < network.size(); ++i) {
    while (network.running(i) && network.node(i).phase == SiteNetwork::Phase::offered) {
      network.advance(i, true);
    }
  }
  deliver();
  for (auto& [to, message] : held) {
    if (answers == Answers::late) {
      CHECK(network.site(to).receive(network.place(to, slow), message).ok());
    }
  }
  return waits;
}

}  // namespace

TEST_CASE("core: in step and without faults, secure sums make D-PSGD on the complete graph") {
  for (const std::size_t count : {std::size_t{3}, std::size_t{6}}) {
    const Quadratic task(count, kDimension, 3);
    ClusterOptions reference{.algorithm = "dpsgd",
                             .topology = "complete",
                             .nodes = count,
                             .dimension = kDimension,
                             .step = {.learning_rate = 0.05, .momentum = 0.5},
                             .seed = 6,
                             .initial_scale = 0};
    Cluster cluster(reference);
    REQUIRE(cluster.driver.run(50, task).ok());
    SiteNetworkOptions options = secure_mean_of(count, count > 3 ? 1 : 0, 3);
    options.dimension = kDimension;
    options.step = reference.step;
    options.gradient = [&](std::size_t site, Round round, std::span<const float> x,
                           std::span<float> g) { task(static_cast<Rank>(site), round, x, g); };
    SiteNetwork network(options);
    for (std::size_t i = 0; i < count; ++i) {
      std::ranges::fill(network.node(i).x, 0.0F);
    }
    network.connect_all();
    network.deliver_all();
    network.run_in_step(50);
    std::vector<float> mean(kDimension);
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(network.state(i).round == 50);
      CHECK(network.state(i).sums.made == 50);
      CHECK(network.state(i).sums.lost == 0);
      CHECK(network.state(i).sums.sites == count);
      CHECK(relative_distance(network.node(i).x, network.node(0).x) < 1e-6);
      for (std::size_t k = 0; k < kDimension; ++k) {
        mean[k] += cluster.x[i][k] / static_cast<float>(count);
      }
    }
    CHECK(relative_distance(network.node(0).x, mean) < 1e-4);
  }
}

TEST_CASE("core: secure sums always add up and go on, whatever dies and returns") {
  std::uint64_t made = 0;
  std::uint64_t lost = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    const std::size_t count = 3 + seed % 5;
    Chaos chaos(secure_mean_of(count, seed % (count - 2), seed), seed);
    chaos.run(300, seed % 2 == 0 ? Faults::crashes : Faults::all);
    chaos.check_recovery();
    const auto check_sums = [&] {
      for (std::size_t i = 0; i < count; ++i) {
        const sites::SumCounts sums = chaos.network.state(i).sums;
        CHECK(sums.unequal == 0);
        made += sums.made;
        lost += sums.lost;
      }
    };
    check_sums();
    // After the faults each round has its sum again, of all.
    for (int turn = 0; turn < 60; ++turn) {
      for (std::size_t i = 0; i < count; ++i) {
        chaos.network.advance(i, true, true);
      }
      chaos.network.connect_all();
      chaos.network.deliver_all();
    }
    check_sums();
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(chaos.network.state(i).sums.lost_in_a_row == 0);
      CHECK(chaos.network.state(i).sums.sites == count);
    }
  }
  CHECK(made > 0);
  CHECK(lost > 0);
}

TEST_CASE("core: one site of five that is gone costs the others no sum") {
  SiteNetwork network(secure_mean_of(5, 0, 4));
  network.connect_all();
  network.deliver_all();
  network.run_in_step(3);
  network.kill(2);
  network.run_in_step(10);
  for (const std::size_t i : {0U, 1U, 3U, 4U}) {
    CHECK(network.state(i).sums.made == 13);
    CHECK(network.state(i).sums.lost == 0);
    CHECK(network.state(i).sums.sites == 4);
  }
  // It comes back ten rounds late, and goes on where the others are.
  network.start(2);
  network.connect_all();
  network.deliver_all();
  for (int turn = 0; turn < 30; ++turn) {
    for (std::size_t i = 0; i < 5; ++i) {
      network.advance(i, true, true);
    }
    network.deliver_all();
  }
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(network.state(i).round == network.state(0).round);
    CHECK(network.state(i).sums.sites == 5);
    CHECK(network.state(i).sums.lost_in_a_row == 0);
  }
}

TEST_CASE("core: one that sends parcels and never answers is not waited for again and again") {
  SiteNetwork network(secure_mean_of(5, 0, 14));
  network.connect_all();
  network.deliver_all();
  network.run_in_step(3);
  // Each answer is needed for the masks with the site that is gone.
  network.kill(4);
  const auto answers = [&] { return network.peers(0)[network.place(0, 3)].answers; };
  for (Round round = 0; round < sites::Punctuality::kPatient; ++round) {
    CHECK(answers());
    CHECK(waits_for(network, 3, Answers::never));
  }
  CHECK_FALSE(answers());
  const std::uint64_t lost = network.state(0).sums.lost;
  CHECK(lost == sites::Punctuality::kPatient);
  for (int round = 0; round < 20; ++round) {
    CHECK_FALSE(waits_for(network, 3, Answers::never));
  }
  CHECK(network.state(0).sums.lost == lost + 20);
  // It comes to itself, and is too late at first, as nobody waits for it.
  waits_for(network, 3, Answers::late);
  CHECK_FALSE(answers());
  const std::uint64_t made = network.state(0).sums.made;
  constexpr Round kFirst = sites::Punctuality::kFirst;
  for (Round round = 0; round < kFirst; ++round) {
    CHECK_FALSE(answers());
    waits_for(network, 3, Answers::prompt);
  }
  CHECK(answers());
  CHECK(network.state(0).sums.made == made + kFirst);
  for (int round = 0; round < 5; ++round) {
    CHECK_FALSE(waits_for(network, 3, Answers::prompt));  // all has come
  }
  CHECK(network.state(0).sums.made == made + kFirst + 5);
  // The next time costs as much, and it must answer twice as often to be waited for again.
  for (Round round = 0; round < sites::Punctuality::kPatient; ++round) {
    CHECK(waits_for(network, 3, Answers::never));
  }
  for (Round round = 0; round < 2 * kFirst; ++round) {
    CHECK_FALSE(waits_for(network, 3, Answers::late));
  }
  CHECK_FALSE(answers());
  waits_for(network, 3, Answers::late);
  CHECK(answers());
}

TEST_CASE("core: a late site says whose model it begins with, and by whose word in which round") {
  SiteNetwork network(secure_mean_of(4, 0, 15));
  network.connect_all();
  network.deliver_all();
  network.run_in_step(4);
  CHECK(network.state(0).giver.empty());  // it began with the initial model
  for (const std::size_t others : {std::size_t{1}, std::size_t{3}}) {
    network.kill(3);
    network.node(3).durable.clear();
    network.start(3);
    for (std::size_t i = 0; i < others; ++i) {
      network.connect(i, 3);
    }
    network.pump(0);
    network.deliver_all();
    CHECK(network.site(3).try_begin(true));
    CHECK(network.state(3).giver == "site-0");
    CHECK(network.state(3).round_said_by == others);
  }
}

TEST_CASE("core: a late site is given a mean, and not a site's model") {
  SiteNetwork network(secure_mean_of(4, 0, 5));
  network.connect_all();
  network.deliver_all();
  network.run_in_step(4);
  network.kill(3);
  network.node(3).durable.clear();  // it has lost its state
  network.start(3);
  const std::vector<float> mean(network.node(0).x);
  network.train(0);  // site 0 has its own model now
  network.write(0);
  network.pump(0);
  CHECK(relative_distance(network.node(0).x, mean) > 1e-3);
  network.connect(0, 3);
  network.pump(0);
  network.deliver_all();
  CHECK(network.site(3).try_begin(true));
  CHECK(relative_distance(network.node(3).x, mean) < 1e-6);
}

TEST_CASE("core: a site that dies after it went on in a later round is not taken for an old one") {
  SiteNetwork network(secure_mean_of(5, 0, 6));
  network.connect_all();
  network.deliver_all();
  network.run_in_step(2);
  for (std::size_t j = 0; j < 4; ++j) {
    network.disconnect(4, j);
  }
  network.run_in_step(9);
  while (network.state(4).round + 5 > network.state(0).round) {
    network.run_in_step(3);
    network.kill(4);  // it falls behind
    network.run_in_step(6);
    network.start(4);
  }
  network.connect_all();
  network.deliver_all();
  const Round before = network.state(4).round;
  for (int turn = 0; turn < 8 && network.state(4).round <= before + 2; ++turn) {
    network.advance(4, false, true);
    network.deliver_all();
  }
  REQUIRE(network.state(4).round > before + 2);
  network.disconnect(4, 0);
  network.connect(4, 0);  // hears of a round that is not durable yet, if any
  network.deliver_all();
  network.kill(4);
  network.start(4);
  network.connect_all();
  network.deliver_all();
  CHECK(network.state(4).resets == 0);
  for (const PeerState& peer : network.peers(4)) {
    CHECK(peer.up);
  }
}

TEST_CASE("core: two of five peers that say a far round take nobody there") {
  SiteNetwork network(secure_mean_of(6, 1, 7));
  network.connect_all();
  network.deliver_all();
  network.run_in_step(3);
  for (const std::size_t liar : {4U, 5U}) {
    const std::size_t place = network.place(0, liar);
    const sites::Receipt far = {.incarnation = network.state(0).incarnation,
                                .applied = network.peers(0)[place].receipts,
                                .round = sites::kMostCount};
    REQUIRE(network.site(0).receive(place, encode(far)).ok());
  }
  network.advance(0, false, true);
  network.advance(0, false, true);
  CHECK(network.state(0).round == 4);
}

TEST_CASE("core: secure sums refuse what they cannot hide, by name") {
  const auto refused = [](const std::function<void(SiteNetworkOptions&)>& change) {
    SiteNetworkOptions options = secure_mean_of(4, 1, 1);
    change(options);
    CHECK_THROWS_AS(SiteNetwork{options}, Error);
  };
  refused([](SiteNetworkOptions& o) { o.sites = 2; });
  refused([](SiteNetworkOptions& o) { o.sum.colluders = 2; });
  refused([](SiteNetworkOptions& o) { o.sum.range = 0; });
  refused([](SiteNetworkOptions& o) { o.sum.range = std::nan(""); });
  refused([](SiteNetworkOptions& o) { o.slack = 1; });
  refused([](SiteNetworkOptions& o) { o.window = 2; });
  refused([](SiteNetworkOptions& o) { o.compressor = "quant:8"; });
  refused([](SiteNetworkOptions& o) { o.rule = "median"; });
  refused([](SiteNetworkOptions& o) { o.observer = [](std::size_t i) { return i == 1; }; });
  refused([](SiteNetworkOptions& o) {
    o.edge = [](std::size_t from, std::size_t to) { return from < to || to == 0; };
  });
}

TEST_CASE("core: sites that cannot sum as one is away do not say that the others are silent") {
  // A sum needs three of the four. Sites 0, 2 and 3 have met site 1 alone.
  SiteNetwork network(secure_mean_of(4, 0, 5));
  for (const std::size_t other : {0U, 2U, 3U}) {
    network.connect(1, other);
  }
  network.deliver_all();
  for (int round = 0; round < 200; ++round) {
    for (std::size_t i = 0; i < 4; ++i) {
      network.advance(i, false, true);
    }
    network.deliver_all();
  }
  for (const std::size_t i : {0U, 2U, 3U}) {
    CHECK(network.state(i).round > 80);
    CHECK(network.peers(i)[network.place(i, 1)].habit == sites::PeerHabit::none);
  }
}

}  // namespace sotto::test::secure_mean_test
