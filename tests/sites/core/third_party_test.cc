// What no third party can do to two honest sites that trust each other: stop what they exchange,
// weigh more than a parcel may, lead them away at once, or end them (docs/sites.md).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/sites/core/conduct/far_pulls.h>
#include <sotto/sites/core/conduct/punctuality.h>

#include "optim/cluster.h"
#include "sites/core/liars.h"
#include "sites/core/site_network.h"

namespace sotto::test::third_party_test {

using sites::Parcel;
using sites::PeerHabit;
using sites::Sequence;

namespace {

constexpr std::size_t kDimension = 8;

SiteNetworkOptions quadratic(std::size_t sites, double rate) {
  SiteNetworkOptions options;
  options.sites = sites;
  options.dimension = kDimension;
  options.step = {.learning_rate = rate};
  options.gradient = [](std::size_t site, Round /*round*/, std::span<const float> x,
                        std::span<float> g) {
    for (std::size_t k = 0; k < x.size(); ++k) {
      g[k] = x[k] - (k == site % kDimension ? 1.0F : 0.0F);
    }
  };
  return options;
}

double norm(std::span<const float> x) { return sites::length_of(x); }

/// Takes, and says so in no hello either.
bool never_confirms(sites::Message& message, std::vector<std::byte>& payload) {
  if (auto* hello = std::get_if<sites::Hello>(&message)) {
    hello->applied = 0;
  }
  return swallows(message, payload);
}

}  // namespace

TEST_CASE("core: two honest sites exchange for ever, whatever a third does or leaves") {
  const std::vector<std::pair<const char*, Lie>> lies = {{"only takes", only_takes},
                                                         {"swallows", swallows}};
  for (const std::string spec : {"none", "quant:8", "topk:0.3"}) {
    for (const std::size_t liars : {1U, 2U, 5U, 11U}) {
      for (const auto& [label, lie] : lies) {
        const char* name = label;  // Clang captures no binding
        CAPTURE(spec);
        CAPTURE(name);
        CAPTURE(liars);
        std::vector<std::size_t> who;
        for (std::size_t k = 0; k < liars; ++k) {
          who.push_back(2 + k);
        }
        SiteNetworkOptions options = quadratic(2 + liars, 0.01);
        options.compressor = spec;
        Liars scene(options, who, lie);
        scene.rounds(5);
        const auto before = scene.applied(0, 1);
        scene.rounds(200);
        CHECK(scene.applied(0, 1) >= before + 199);
        CHECK(scene.applied(1, 0) >= before + 199);
        for (const std::size_t i : {0U, 1U}) {
          CHECK(scene.network.state(i).mass > 0);
          CHECK(scene.seen(i, 1 - i).offences == 0);
          CHECK(scene.seen(i, 1 - i).habit == PeerHabit::none);
        }
      }
    }
  }
}

TEST_CASE("core: what an undeclared taker does is seen, and revoking it mends it") {
  SiteNetworkOptions options = quadratic(3, 0.01);
  Liars scene(options, {2}, only_takes);
  scene.rounds(120);
  CHECK(scene.seen(0, 2).habit != PeerHabit::none);
  CHECK(scene.network.state(0).drained);
  const double low = scene.network.state(0).mass;
  CHECK(low >= 0.25);
  for (const std::size_t i : {0U, 1U}) {
    scene.network.site(i).update_peers(
        {{.name = fmt::format("site-{}", 1 - i), .hears = true, .tells = true}});
  }
  CHECK(scene.network.site(0).peers().size() == 1);
}

TEST_CASE("core: a send-only neighbour takes and takes, and the others go on") {
  // 2 only listens: neither side lets it send.
  for (const std::size_t sites : {3U, 4U, 12U}) {
    CAPTURE(sites);
    SiteNetworkOptions options = quadratic(sites, 0.02);
    options.edge = [](std::size_t from, std::size_t to) { return from < 2 && from != to; };
    SiteNetwork network(options);
    network.connect_all();
    network.deliver_all();
    network.run_in_step(300);
    for (const std::size_t i : {0U, 1U}) {
      const PeerState other = network.peers(i)[network.place(i, 1 - i)];
      CHECK(other.applied == 300);
      CHECK(network.state(i).mass >= 0.25);
      CHECK(network.peers(i)[network.place(i, 2)].habit == PeerHabit::takes);
      CHECK(other.habit == PeerHabit::none);
    }
    CHECK(relative_distance(network.site(0).parameters(), network.site(1).parameters()) < 0.1);
  }
}

TEST_CASE("core: whatever comes twice a round counts as one parcel") {
  for (const std::size_t count : {3U, 8U}) {
    for (const double mass : {1.0, 1000.0}) {
      CAPTURE(count);
      CAPTURE(mass);
      SiteNetwork network(quadratic(count, 0.01));
      network.connect_all();
      network.deliver_all();
      const std::size_t liar = count - 1;
      Sequence next = 1;
      for (Round round = 0; round < 200; ++round) {
        for (std::size_t i = 0; i < liar; ++i) {
          network.advance(i, false, true);
          network.queue(i, liar).clear();  // the test speaks for it
        }
        network.deliver_all();
        for (std::size_t i = 0; i < liar; ++i) {
          const std::size_t from = network.place(i, liar);
          const auto say = [&](const auto& message) {
            REQUIRE(network.site(i).receive(from, SharedBytes::copy(encode(message))).ok());
          };
          const auto incarnation = network.state(liar).incarnation;
          std::vector<std::byte> payload(2 * sizeof(double) + kDimension * sizeof(float));
          set_share(payload, 1, mass);
          for (const Sequence more : {0U, 1U}) {
            say(Parcel{.incarnation = incarnation,
                       .sequence = next + more,
                       .round = 1'000'000 + next + more,
                       .payload = payload});
          }
          say(sites::Receipt{.incarnation = network.state(i).incarnation,
                             .applied = network.peers(i)[from].sent,
                             .round = 1'000'001 + next,
                             .own_steps = 1});
        }
        next += 2;
        for (std::size_t i = 0; i < liar; ++i) {
          network.collect(i);
          network.queue(i, liar).clear();
        }
      }
      for (std::size_t i = 0; i < liar; ++i) {
        CHECK(network.peers(i)[network.place(i, liar)].applied == 400);
        const double most = mass > 1 ? 1.1 : 1.05 * static_cast<double>(count);
        CHECK(network.state(i).mass < most);
      }
    }
  }
}

TEST_CASE("core: a taker is named though another one says that it takes nothing") {
  // 2 says that it may not send, and 3 that it does not hear: an edge that is used one way.
  const auto together = [](sites::Message& message, std::vector<std::byte>& payload) {
    if (auto* hello = std::get_if<sites::Hello>(&message)) {
      const bool last = hello->incarnation == first_incarnation(0, 3);
      (last ? hello->hears : hello->tells) = false;
    }
    return only_takes(message, payload);
  };
  Liars scene(quadratic(4, 0.01), {2, 3}, together);
  scene.rounds(200);
  for (const std::size_t i : {0U, 1U}) {
    CHECK(scene.network.state(i).drained);
    CHECK(scene.seen(i, 2).habit == PeerHabit::takes);
    CHECK(scene.seen(i, 1 - i).habit == PeerHabit::none);
  }
}

TEST_CASE("core: a full mesh of nine and more exchanges from the first round on") {
  for (const std::size_t sites : {2U, 8U, 9U, 10U, 17U}) {
    CAPTURE(sites);
    SiteNetwork network(quadratic(sites, 0.05));
    network.connect_all();
    network.deliver_all();
    network.run_in_step(4);
    for (std::size_t i = 0; i < sites; ++i) {
      for (const PeerState& peer : network.peers(i)) {
        CHECK(peer.applied == 4);
      }
      CHECK(network.state(i).mass == doctest::Approx(1).epsilon(1e-9));
      CHECK(network.state(i).raised == 0);
    }
  }
}

TEST_CASE("core: mass comes back to 1 by its part a round, and within its bounds") {
  // Alone, from 1/4: 1 − 3/4 (255/256)^t.
  SiteNetworkOptions options = quadratic(2, 0);
  options.edge = [](std::size_t from, std::size_t /*to*/) { return from == 0; };
  SiteNetwork network(options);
  network.connect_all();
  network.deliver_all();
  network.run_in_step(100);
  CHECK(network.state(0).mass == 0.25);
  network.kill(1);
  const double before = network.state(0).raised;
  for (int round = 1; round <= 200; ++round) {
    network.advance(0, true);
    network.advance(0, true);
    CHECK(network.state(0).mass ==
          doctest::Approx(1 - 0.75 * std::pow(255.0 / 256, round)).epsilon(1e-12));
  }
  CHECK(network.state(0).raised - before ==
        doctest::Approx(network.state(0).mass - 0.25).epsilon(1e-9));
  // The receiver of all is bounded, too.
  CHECK(network.state(1).mass <= 16);
}

TEST_CASE("core: a minter counts as one site, whatever it mints, and nobody is accused") {
  for (const double minted : {1.0, 3.0, 1022.0}) {
    CAPTURE(minted);
    SiteNetworkOptions options = quadratic(4, 0.01);
    Liars scene(options, {3}, [&](sites::Message& message, std::vector<std::byte>& payload) {
      if (std::holds_alternative<Parcel>(message)) {
        set_share(payload, 0.25, minted);
        set_values(payload, 0);
      }
      return true;
    });
    scene.rounds(600);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(scene.network.state(i).mass < 4);
      for (const PeerState& peer : scene.network.peers(i)) {
        CHECK(peer.offences == 0);
        CHECK(peer.up);
      }
      CHECK(norm(scene.network.site(i).parameters()) > 0);
      if (minted > 1) {
        // As without it: steps are as long, and the optimum is that of the three.
        CHECK(scene.network.state(i).mass == doctest::Approx(1).epsilon(0.1));
        for (std::size_t k = 0; k < kDimension; ++k) {
          CHECK(scene.network.site(i).parameters()[k] ==
                doctest::Approx(k < 3 ? 1.0 / 3 : 0).epsilon(0.05).scale(1));
        }
      }
    }
    CHECK(scene.applied(0, 1) >= 590);
  }
}

TEST_CASE("core: absurd parcels move nothing, however many come") {
  for (const auto exchange : {sites::MixingKind::push_sum, sites::MixingKind::gossip}) {
    for (const float value : {1e9F, 3e37F, -std::numeric_limits<float>::max()}) {
      CAPTURE(value);
      SiteNetworkOptions options = quadratic(3, 0.05);
      options.exchange = exchange;
      bool lying = false;
      Liars scene(options, {2}, [&](sites::Message& message, std::vector<std::byte>& payload) {
        if (lying && std::holds_alternative<Parcel>(message)) {
          set_values(payload, value);
        }
        return true;
      });
      scene.rounds(20);
      const std::vector<float> before(scene.network.site(0).parameters().begin(),
                                      scene.network.site(0).parameters().end());
      lying = true;
      scene.round();
      const auto away = [&] {
        return sites::distance_between(scene.network.site(0).parameters(), before);
      };
      // The site has made its own step, and its honest neighbour has pulled.
      CHECK(away() < 4 * scene.network.state(0).longest_step);
      CHECK(scene.seen(0, 2).cut == 1);
      CHECK(scene.seen(0, 1).cut == 0);
      CHECK(scene.seen(0, 2).offences == 0);
      scene.rounds(100);
      CHECK(away() < 32 * scene.network.state(0).longest_step);
    }
  }
}

TEST_CASE("core: a rule takes no pull beyond the bound, and who pulls farther is told and barred") {
  for (const std::string rule :
       {"mean", "clipped:auto", "median", "trimmed-mean:1", "geometric-median"}) {
    CAPTURE(rule);
    for (const float value : {1e15F, 3e37F}) {
      CAPTURE(value);
      SiteNetworkOptions options = quadratic(4, 0.05);
      options.exchange = sites::MixingKind::gossip;
      options.rule = rule;
      bool lying = false;
      Liars scene(options, {3}, [&](sites::Message& message, std::vector<std::byte>& payload) {
        if (lying && std::holds_alternative<Parcel>(message)) {
          payload[0] |= std::byte{1};  // a whole copy: a change would have to fit the one before
          set_values(payload, value);
        }
        return true;
      });
      scene.rounds(20);
      const std::vector<float> before(scene.network.site(0).parameters().begin(),
                                      scene.network.site(0).parameters().end());
      lying = true;
      scene.round();
      CHECK(sites::distance_between(scene.network.site(0).parameters(), before) <
            4 * scene.network.state(0).longest_step);
      CHECK(scene.seen(0, 3).cut == 1);
      CHECK(scene.seen(0, 3).blamed == 1);
      scene.round();
      CHECK(scene.seen(0, 3).barred);
      scene.rounds(30);
      CHECK(scene.seen(0, 1).cut == 0);
      CHECK(scene.seen(0, 1).blamed == 0);
      CHECK(norm(scene.network.site(0).parameters()) < 2);
    }
  }
}

TEST_CASE("core: a far model that stays is told, and of nobody else") {
  for (const auto exchange : {sites::MixingKind::push_sum, sites::MixingKind::gossip}) {
    for (const float far : {0.9F, 2.5F}) {
      CAPTURE(far);
      // Steps of honest sites do not get longer where the third leads them, and it goes on ahead.
      SiteNetworkOptions options = quadratic(3, 0.05);
      options.exchange = exchange;
      bool lying = false;
      float to = far;
      options.gradient = [&](std::size_t site, Round, std::span<const float> x,
                             std::span<float> g) {
        const bool lies = lying && site == 2;
        to += lies ? 0.02F : 0.0F;
        for (std::size_t k = 0; k < x.size(); ++k) {
          g[k] = lies ? (x[k] - 1 - to) / 0.05F : std::clamp(x[k] - 1, -0.01F, 0.01F);
        }
      };
      SiteNetwork network(options);
      network.connect_all();
      network.deliver_all();
      const auto habit = [&](std::size_t by, std::size_t of) {
        return network.peers(by)[network.place(by, of)].habit;
      };
      network.run_in_step(200);
      CHECK(habit(0, 2) == PeerHabit::none);
      lying = true;
      network.run_in_step(2 * sites::FarPulls::kRounds + 2);
      CHECK(habit(0, 2) == PeerHabit::stays_far);
      CHECK(habit(0, 1) == PeerHabit::none);
      CHECK(habit(1, 0) == PeerHabit::none);
      CHECK(network.peers(0)[network.place(0, 2)].blamed == 0);
      lying = false;
      network.run_in_step(3000);  // it comes back as fast as its pulls are long
      CHECK(habit(0, 2) == PeerHabit::none);
    }
  }
}

TEST_CASE("core: a site that hears of many and tells few sends no more than a parcel may hold") {
  // Six send to site 0, which tells site 7 alone: 7 must not take it for one that mints.
  SiteNetworkOptions options = quadratic(8, 0.02);
  options.edge = [](std::size_t from, std::size_t to) {
    return to == 0 ? from != 7 : from == 0 ? to == 7 : from == 7 && to == 1;
  };
  SiteNetwork network(options);
  network.connect_all();
  network.deliver_all();
  network.run_in_step(3 * sites::kLongWhile);
  const PeerState& told = network.peers(7)[network.place(7, 0)];
  CHECK(told.applied > 2 * sites::kLongWhile);
  CHECK(told.habit == PeerHabit::none);
  CHECK(told.cut == 0);
  CHECK(network.state(0).mass > 2);  // what it may not send in one parcel it keeps
}

TEST_CASE("core: who mints for long is no longer heard, until a parcel of its is right") {
  SiteNetworkOptions options = quadratic(3, 0.05);
  bool lying = true;
  Liars scene(options, {2}, [&](sites::Message& message, std::vector<std::byte>& payload) {
    if (lying && std::holds_alternative<Parcel>(message)) {
      set_share(payload, 0.25, 200);
    }
    return true;
  });
  scene.rounds(sites::kLongWhile + 4);
  const std::uint64_t heard = scene.seen(0, 2).cut;
  scene.rounds(20);
  CHECK(scene.seen(0, 2).cut >= heard + 18);  // its model counts for nothing
  CHECK(scene.seen(0, 1).cut == 0);
  lying = false;
  scene.rounds(2);
  const std::uint64_t again = scene.seen(0, 2).cut;
  scene.rounds(20);
  CHECK(scene.seen(0, 2).cut == again);
}

TEST_CASE("core: who takes and comes back as another process is named, and so is who is silent") {
  SiteNetworkOptions options = quadratic(3, 0.01);
  Liars scene(options, {2}, only_takes);
  for (int again = 0; again < 6; ++again) {  // before it is a habit of one meeting
    scene.rounds(static_cast<int>(sites::kLongWhile) - 4);
    scene.network.kill(2);
    scene.network.node(2).durable.clear();
    scene.network.start(2);
  }
  scene.rounds(2);
  for (const std::size_t i : {0U, 1U}) {
    CHECK(scene.network.state(i).drained);
    CHECK(scene.seen(i, 2).habit == PeerHabit::takes);
    CHECK(scene.seen(i, 1 - i).habit == PeerHabit::none);
  }
  for (const auto& [lie, habit] : std::vector<std::pair<Lie, PeerHabit>>{
           {only_takes, PeerHabit::sends_nothing}, {never_confirms, PeerHabit::confirms_nothing}}) {
    options.exchange = sites::MixingKind::gossip;
    Liars silent(options, {2}, lie);
    for (int again = 0; again < 6; ++again) {
      silent.rounds(30);
      silent.network.disconnect(0, 2);
    }
    silent.rounds(2);
    CHECK(silent.seen(0, 2).habit == habit);
    CHECK(silent.seen(0, 1).habit == PeerHabit::none);
  }
}

TEST_CASE("core: who gives all that a parcel may hold is named, and nobody who passes it on") {
  // 4 hears of it by way of 0 alone.
  SiteNetworkOptions options = quadratic(5, 0.01);
  options.edge = [](std::size_t from, std::size_t to) {
    return from != to && ((from != 4 && to != 4) || from == 0 || to == 0);
  };
  bool lying = false;
  Liars scene(options, {3}, [&](sites::Message& message, std::vector<std::byte>& payload) {
    if (lying && std::holds_alternative<Parcel>(message)) {
      set_share(payload, 1, 1);
    }
    return true;
  });
  const auto accused = [&](std::size_t by) {
    std::vector<std::size_t> found;
    for (std::size_t k = 0; k < scene.network.listed(by).size(); ++k) {
      if (scene.network.peers(by)[k].habit != PeerHabit::none) {
        found.push_back(scene.network.listed(by)[k]);
      }
    }
    return found;
  };
  scene.rounds(300);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(accused(i).empty());
  }
  lying = true;
  std::vector<bool> named(3);
  for (int part = 0; part < 200; ++part) {
    scene.rounds(10);
    for (const std::size_t i : {0U, 1U, 2U}) {
      named[i] = named[i] || scene.seen(i, 3).habit == PeerHabit::gives;
      CHECK((accused(i).empty() || accused(i) == std::vector<std::size_t>{3}));
    }
  }
  CHECK(named == std::vector<bool>(3, true));
  CHECK(scene.network.state(0).mass < 5);  // once it is named its mass does not count
}

TEST_CASE("core: who mints in every second parcel is named, and not heard") {
  SiteNetworkOptions options = quadratic(3, 0.05);
  std::size_t parcels = 0;
  Liars scene(options, {2}, [&](sites::Message& message, std::vector<std::byte>& payload) {
    if (std::holds_alternative<Parcel>(message) && (++parcels / 2) % 2 == 0) {  // one to each
      set_share(payload, 0.25, 200);
    }
    return true;
  });
  scene.rounds(12);
  CHECK(scene.seen(0, 2).habit == PeerHabit::mints);
  CHECK(scene.seen(0, 1).habit == PeerHabit::none);
  scene.rounds(4 * sites::kLongWhile);
  const std::uint64_t cut = scene.seen(0, 2).cut;
  scene.rounds(20);
  CHECK(scene.seen(0, 2).cut >= cut + 18);
}

TEST_CASE("core: a model that is spoiled is put back, and who spoils it again is not heard") {
  for (const auto exchange : {sites::MixingKind::push_sum, sites::MixingKind::gossip}) {
    SiteNetworkOptions options = quadratic(3, 0.05);
    options.exchange = exchange;
    options.pull = {.most = 1e9, .memory = 1};  // as if it had no bound
    bool lying = false;
    Liars scene(options, {2}, [&](sites::Message& message, std::vector<std::byte>& payload) {
      if (lying && std::holds_alternative<Parcel>(message)) {
        set_values(payload, 1e7F);
      }
      return true;
    });
    scene.rounds(20);
    lying = true;
    for (const bool again : {false, true}) {
      const std::vector<float> before(scene.network.site(0).parameters().begin(),
                                      scene.network.site(0).parameters().end());
      // In gossip a copy that was lied about is dropped, and comes whole.
      for (int k = 0; k < 3 && norm(scene.network.site(0).parameters()) < 1e5; ++k) {
        scene.round();
      }
      CHECK(norm(scene.network.site(0).parameters()) > 1e5);
      REQUIRE(scene.network.site(0).try_begin(true));
      const auto suspects = scene.network.site(0).put_back();
      REQUIRE(suspects.has_value());
      REQUIRE_FALSE(suspects->empty());
      CHECK(scene.network.listed(0)[suspects->front().peer] == 2);
      CHECK(suspects->front().blamed);
      CHECK(suspects->front().barred == again);
      CHECK(sites::distance_between(scene.network.site(0).parameters(), before) < 1);
      CHECK_FALSE(scene.network.site(0).put_back().has_value());
      REQUIRE(scene.network.site(1).try_begin(true));
      REQUIRE(scene.network.site(1).put_back().has_value());
      CHECK(scene.seen(0, 2).spoiled == (again ? 2 : 1));
    }
    const auto others = scene.applied(1, 0);
    const auto taken = scene.applied(2, 0);
    scene.rounds(10);
    CHECK(norm(scene.network.site(0).parameters()) < 1e5);
    CHECK(scene.applied(1, 0) == others + 10);  // the honest one is heard on
    CHECK(scene.applied(2, 0) == taken + 10);   // and each parcel still applied once
  }
}

TEST_CASE("core: a site's own blow-up is not blamed on the only peer") {
  for (const auto exchange : {sites::MixingKind::push_sum, sites::MixingKind::gossip}) {
    for (const bool good_step : {false, true}) {
      CAPTURE(good_step);
      SiteNetworkOptions options = quadratic(2, 0.05);
      options.exchange = exchange;
      options.communication_interval = 4;
      SiteNetwork network(options);
      network.connect_all();
      network.deliver_all();
      network.run_in_step(20);
      for (int again = 0; again < 3; ++again) {
        network.run_in_step(1);
        Site& site = network.site(0);
        REQUIRE(site.try_begin(true));
        if (good_step) {
          const std::vector<float> gradient(kDimension, 0.1F);
          REQUIRE(site.step(gradient).ok());
        }
        const auto suspects = site.put_back();  // the model is put back, whoever is to blame
        REQUIRE(suspects.has_value());
        REQUIRE(suspects->size() == 1);
        CHECK_FALSE(suspects->front().blamed);
        CHECK_FALSE(site.put_back().has_value());  // and what fails again is the site's own
        CHECK(network.peers(0)[0].blamed == 0);
        CHECK_FALSE(network.peers(0)[0].barred);
      }
    }
  }
}

TEST_CASE("core: a third party that weighs nothing has nobody blamed for a site's own blow-up") {
  SiteNetworkOptions options = quadratic(3, 0.05);
  options.communication_interval = 4;
  Liars scene(options, {2}, [&](sites::Message& message, std::vector<std::byte>& payload) {
    if (std::holds_alternative<Parcel>(message)) {  // share and mass, the first of a payload
      for (std::size_t at = 0; at < 2 * sizeof(double); at += sizeof(double)) {
        double value = 0;
        std::memcpy(&value, payload.data() + at, sizeof value);
        value *= 1e-4;
        std::memcpy(payload.data() + at, &value, sizeof value);
      }
    }
    return true;
  });
  scene.rounds(20);
  for (int again = 0; again < 3; ++again) {
    scene.round();
    Site& site = scene.network.site(0);
    REQUIRE(site.try_begin(true));
    const auto suspects = site.put_back();
    REQUIRE(suspects.has_value());
    REQUIRE(suspects->size() == 2);
    CHECK(suspects->back().moved < 0.01 * suspects->front().moved);
    CHECK_FALSE(suspects->front().blamed);
    CHECK(scene.seen(0, 1).blamed == 0);
  }
}

TEST_CASE("core: the only peer is blamed where it led the model away at once") {
  SiteNetworkOptions options = quadratic(2, 0.05);
  options.pull = {.most = 1e9, .memory = 1};
  bool lying = false;
  Liars scene(options, {1}, [&](sites::Message& message, std::vector<std::byte>& payload) {
    if (lying && std::holds_alternative<Parcel>(message)) {
      set_values(payload, 1e7F);
    }
    return true;
  });
  scene.rounds(20);
  lying = true;
  scene.round();
  REQUIRE(scene.network.site(0).try_begin(true));
  const auto suspects = scene.network.site(0).put_back();
  REQUIRE(suspects.has_value());
  CHECK(suspects->front().blamed);
}

TEST_CASE("core: observers cost nobody anything, and follow") {
  for (const std::string spec : {"none", "quant:8"}) {
    SiteNetworkOptions options = quadratic(4, 0.02);
    options.compressor = spec;
    options.edge = [](std::size_t from, std::size_t to) { return from < 2 && from != to; };
    options.observer = [](std::size_t site) { return site >= 2; };
    SiteNetwork network(options);
    network.connect_all();
    network.deliver_all();
    network.run_in_step(200);
    for (const std::size_t i : {0U, 1U}) {
      CHECK(network.state(i).mass == doctest::Approx(1).epsilon(1e-9));
      const PeerState observer = network.peers(i)[network.place(i, 2)];
      CHECK(observer.observer);
      CHECK(observer.given == 0);
      CHECK(observer.receipts == 199);
      CHECK(observer.habit == PeerHabit::none);
    }
    const auto model = network.site(2).parameters();
    CHECK(relative_distance(model, network.site(0).parameters()) < 0.2);
    CHECK(network.state(2).mass == 1);
  }
}

namespace {

/// Sites 0 and 1 are honest, 2 observes, and 3 lies from some round on; 2 tells nobody.
SiteNetworkOptions observed(const std::string& spec) {
  SiteNetworkOptions options = quadratic(4, 0.02);
  options.compressor = spec;
  options.edge = [](std::size_t from, std::size_t to) { return from != 2 && from != to; };
  options.observer = [](std::size_t site) { return site == 2; };
  return options;
}

}  // namespace

TEST_CASE("core: an observer is not led away by absurd parcels, and bars who sends them") {
  for (const std::string spec : {"none", "quant:8"}) {
    for (const float value : {1e9F, 3e37F}) {
      for (const int honest : {0, 20}) {  // from the beginning, and later
        CAPTURE(spec);
        CAPTURE(value);
        CAPTURE(honest);
        bool lying = honest == 0;
        Liars scene(
            observed(spec), {3}, [&](sites::Message& message, std::vector<std::byte>& payload) {
              if (lying && std::holds_alternative<Parcel>(message)) {
                spec == "none" ? set_values(payload, value) : set_share(payload, 1, 0x1p-60);
              }
              return true;
            });
        scene.rounds(honest);
        lying = true;
        scene.rounds(100);
        const auto model = scene.network.site(2).parameters();
        CHECK(relative_distance(model, scene.network.site(0).parameters()) < 0.5);
        CHECK(scene.seen(2, 3).blamed >= 2);
        CHECK(scene.seen(2, 3).barred);
        for (const std::size_t honest_site : {0U, 1U}) {
          CHECK(scene.seen(2, honest_site).blamed == 0);
          CHECK(scene.seen(2, honest_site).cut == 0);
          CHECK(scene.seen(2, honest_site).habit == PeerHabit::none);
        }
      }
    }
  }
}

TEST_CASE("core: an observer is not led on by pulls that are as long as it lets pass") {
  // Whatever is far must not make the pulls of the others longer, and by them what passes.
  for (const float value : {0.1F, 1.0F, 10.0F, 100.0F}) {
    CAPTURE(value);
    Liars scene(observed("none"), {3},
                [&](sites::Message& message, std::vector<std::byte>& payload) {
                  if (std::holds_alternative<Parcel>(message)) {
                    set_values(payload, value);
                  }
                  return true;
                });
    scene.rounds(400);
    const auto model = scene.network.site(2).parameters();
    const auto honest = scene.network.site(0).parameters();
    CHECK(relative_distance(model, honest) < 1);
  }
}

TEST_CASE("core: an observer follows from a model of zeros, and one that is far away") {
  for (const float first : {0.0F, 50.0F}) {
    CAPTURE(first);
    SiteNetworkOptions options = observed("none");
    options.sites = 3;
    SiteNetwork network(options);
    network.connect(0, 1);
    network.deliver_all();
    std::ranges::fill(network.node(2).x, first);
    network.run_in_step(1);  // it begins alone, at its own model
    network.connect_all();
    network.deliver_all();
    network.run_in_step(300);
    CHECK(relative_distance(network.site(2).parameters(), network.site(0).parameters()) < 0.2);
    for (const PeerState& peer : network.peers(2)) {
      CHECK(peer.blamed == 0);
      CHECK(peer.habit == PeerHabit::none);
    }
  }
}

TEST_CASE("core: a late site is not taken to the end of its rounds by one neighbour") {
  for (const Round claimed : {Round{100}, Round{1} << 47}) {
    SiteNetworkOptions options = quadratic(4, 0.05);
    options.rounds = 100;
    SiteNetwork network(options);
    network.connect(0, 1);
    network.deliver_all();
    network.site(3).peer_up(network.place(3, 2));
    (void)network.site(3).released();
    REQUIRE(network.site(3)
                .receive(network.place(3, 2), encode(sites::Hello{.incarnation = 99,
                                                                  .life = 1,
                                                                  .has_model = true,
                                                                  .hears = true,
                                                                  .tells = true,
                                                                  .round = claimed,
                                                                  .degree = 3}))
                .ok());
    REQUIRE(network.site(3)
                .receive(network.place(3, 2),
                         encode(sites::Model{.incarnation = 99,
                                             .round = claimed,
                                             .values = std::vector<float>(kDimension, 0.5F)}))
                .ok());
    CHECK_FALSE(network.site(3).try_begin(false));  // a second one may come
    CHECK(network.site(3).try_begin(true));
    CHECK(network.state(3).round == 50);
    CHECK(network.site(3).parameters()[0] == 0.5F);
    // A model that cannot be trained on is put back to the initial one.
    CHECK(network.site(3).put_back().has_value());
    CHECK(network.site(3).parameters()[0] != 0.5F);
  }
}

TEST_CASE("core: who is always late is not waited for until it was in time as often as it owes") {
  sites::Punctuality punctuality;
  CHECK(punctuality.waited_for());
  int waits = 0;
  for (int round = 0; round < 1000; ++round) {
    const bool waited = punctuality.waited_for();
    waits += waited ? 1 : 0;
    punctuality.note(!waited);  // late whenever it is waited for
  }
  CHECK(waits < 40);
  for (int round = 0; round < 5000; ++round) {
    punctuality.note(true);
  }
  CHECK(punctuality.waited_for());
  SiteNetworkOptions options = quadratic(3, 0.05);
  SiteNetwork network(options);
  network.connect_all();
  network.deliver_all();
  network.run_in_step(2);
  int stalled = 0;
  bool given_up = false;
  for (int round = 0; round < 20; ++round) {  // 2 stays in touch, and a round behind
    for (const std::size_t i : {0U, 1U}) {
      network.advance(i, true);
    }
    network.deliver_all();
    stalled += network.site(0).complete() ? 0 : 1;
    given_up = given_up || !network.peers(0)[network.place(0, 2)].waited_for;
    for (const std::size_t i : {0U, 1U}) {
      network.collect(i);
    }
    network.advance(2, true);
    network.deliver_all();
    if (network.node(2).phase == SiteNetwork::Phase::offered) {
      network.collect(2);
    }
  }
  CHECK(stalled <= 3);
  CHECK(given_up);  // until its place, a round behind, is the one that it keeps
  CHECK(network.peers(0)[network.place(0, 1)].waited_for);
}

}  // namespace sotto::test::third_party_test
