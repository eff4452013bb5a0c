// Sites beside neighbours that lie about mass: who is named, who is not, and what masses become.
#include <cstddef>
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>

#include "sites/core/liars.h"
#include "sites/core/site_network.h"

namespace sotto::test::mass_liars_test {

using sites::Parcel;
using sites::PeerHabit;

namespace {

SiteNetworkOptions line_of(std::size_t sites) {
  SiteNetworkOptions options;
  options.sites = sites;
  options.edge = [](std::size_t from, std::size_t to) { return from + 1 == to || to + 1 == from; };
  return options;
}

/// Sends parcels with such a part of the mass that they should hold, and of the model with it.
Lie gives_part(double part) {
  return [part](sites::Message& message, std::vector<std::byte>& payload) {
    if (std::holds_alternative<Parcel>(message)) {
      double share = 0;
      double mass = 0;
      std::memcpy(&share, payload.data(), sizeof share);
      std::memcpy(&mass, payload.data() + sizeof share, sizeof mass);
      set_share(payload, share * part, mass * part);
    }
    return true;
  };
}

/// Says that its parcels have so many times the mass that they should hold.
Lie mints_times(double times) {
  return [times](sites::Message& message, std::vector<std::byte>& payload) {
    if (std::holds_alternative<Parcel>(message)) {
      double mass = 0;
      std::memcpy(&mass, payload.data() + sizeof(double), sizeof mass);
      mass *= times;
      std::memcpy(payload.data() + sizeof mass, &mass, sizeof mass);
    }
    return true;
  };
}

/// Gives no receipts, and sends what it should.
bool denies(sites::Message& message, std::vector<std::byte>& /*payload*/) {
  return !std::holds_alternative<sites::Receipt>(message);
}

}  // namespace

TEST_CASE("core: who takes at the end of a line is named by its neighbour and nobody else is") {
  for (const std::size_t count : {3U, 4U, 5U}) {
    CAPTURE(count);
    Liars scene(line_of(count), {count - 1}, only_takes);
    for (int part = 0; part < 20; ++part) {
      scene.rounds(60);
      for (std::size_t i = 0; i + 2 < count; ++i) {
        CHECK(scene.seen(i, i + 1).habit == PeerHabit::none);
        CHECK(scene.seen(i + 1, i).habit == PeerHabit::none);
      }
    }
    CHECK(scene.network.state(0).drained);  // it is drained, by way of an honest site
    CHECK(scene.seen(count - 2, count - 1).habit == PeerHabit::takes);
  }
}

TEST_CASE("core: who gives little is named, and who gives what it should is not") {
  for (const double part : {1e-6, 0.01, 0.05}) {
    CAPTURE(part);
    SiteNetworkOptions options;
    options.sites = 3;
    Liars scene(options, {2}, gives_part(part));
    scene.rounds(300);
    for (const std::size_t i : {0U, 1U}) {
      CHECK(scene.network.state(i).drained);
      CHECK(scene.seen(i, 2).habit == PeerHabit::takes);
      CHECK(scene.seen(i, 1 - i).habit == PeerHabit::none);
    }
  }
  SiteNetworkOptions options;
  options.sites = 3;
  Liars honest(options, {2}, gives_part(1));
  honest.rounds(300);
  CHECK(honest.seen(0, 2).habit == PeerHabit::none);
}

TEST_CASE("core: who confirms nothing does not raise the mass of others, and is named") {
  for (const std::size_t count : {3U, 5U}) {
    CAPTURE(count);
    SiteNetworkOptions options;
    options.sites = count;
    Liars scene(options, {count - 1}, denies);
    scene.rounds(3000);
    for (std::size_t i = 0; i + 1 < count; ++i) {
      CHECK(scene.network.state(i).mass < 2);
      CHECK(scene.seen(i, count - 1).habit == PeerHabit::confirms_nothing);
      CHECK(scene.seen(i, count - 1).offences == 0);
      CHECK(scene.network.state(i).lowered > 0);
    }
    CHECK(scene.applied(0, 1) >= 2990);
  }
}

TEST_CASE("core: who gives and does not take raises the mass of others to a bound") {
  for (const std::size_t count : {3U, 5U}) {
    for (const bool deaf : {true, false}) {  // it says so, or confirms now and then
      CAPTURE(count);
      CAPTURE(deaf);
      SiteNetworkOptions options;
      options.sites = count;
      int receipts = 0;
      Liars scene(options, {count - 1}, [&](sites::Message& message, std::vector<std::byte>&) {
        if (auto* hello = std::get_if<sites::Hello>(&message)) {
          hello->hears = !deaf;
        }
        return deaf || !std::holds_alternative<sites::Receipt>(message) ||
               ++receipts % (31 * static_cast<int>(count - 1) + 1) == 0;  // one in turn
      });
      bool named = false;
      double sum = 0;
      for (int part = 0; part < 300; ++part) {
        scene.rounds(10);
        named = named || scene.seen(0, count - 1).habit == PeerHabit::gives;
        sum += part >= 100 ? scene.network.state(0).mass : 0;
        const PeerHabit honest = scene.seen(0, 1).habit;
        CHECK((honest == PeerHabit::none || honest == PeerHabit::gives));  // which passes it on
      }
      CHECK(named);
      CHECK(sum / 200 < 5);  // where the mass would go to 16
      CHECK(scene.applied(0, 1) >= 2990);
    }
  }
}

TEST_CASE(
    "core: what a minter was given comes back as it went, whatever the compressor withholds") {
  constexpr std::uint64_t kSeed = 4242;
  CAPTURE(kSeed);
  for (const std::string compressor : {"none", "topk:0.1", "quant:4"}) {
    CAPTURE(compressor);
    SiteNetworkOptions options;
    options.sites = 4;
    options.dimension = 60;
    options.edge = [](std::size_t from, std::size_t to) {
      return (from + 1) % 4 == to || (to + 1) % 4 == from;
    };
    options.compressor = compressor;
    options.same_start = false;
    options.seed = kSeed;
    options.pull.most = 1e9;
    Liars scene(options, {3}, mints_times(1000));
    const auto sum = [&](std::size_t k) {
      double all = 0;
      for (std::size_t i = 0; i < 3; ++i) {
        all += scene.network.state(i).mass *
               static_cast<double>(scene.network.site(i).parameters()[k]);
      }
      return all;
    };
    scene.rounds(1);
    std::vector<double> before(options.dimension);
    for (std::size_t k = 0; k < before.size(); ++k) {
      before[k] = sum(k);
    }
    scene.rounds(200);
    CHECK(scene.seen(0, 3).habit == PeerHabit::mints);
    for (std::size_t k = 0; k < before.size(); ++k) {
      CHECK(sum(k) == doctest::Approx(before[k]).epsilon(1e-3));
    }
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(scene.network.state(i).mass == doctest::Approx(1).epsilon(0.01));
    }
  }
}

TEST_CASE("core: under a coarse compressor a parcel has no more mass than an honest site's") {
  SiteNetworkOptions options;
  options.sites = 4;
  options.dimension = 100;
  options.compressor = "topk:0.05";
  Liars scene(options, {3}, [](sites::Message& message, std::vector<std::byte>& payload) {
    if (std::holds_alternative<Parcel>(message)) {
      double share = 0;
      std::memcpy(&share, payload.data(), sizeof share);
      set_share(payload, share, 1);  // what a site may share that has nobody else
    }
    return true;
  });
  scene.rounds(1000);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(scene.network.state(i).mass < 1.1);
    CHECK(scene.seen(i, 3).habit == PeerHabit::mints);
    CHECK(scene.seen(i, (i + 1) % 3).habit == PeerHabit::none);
  }
}

TEST_CASE("core: in gossip one that confirms nothing is left out, and back when it confirms") {
  SiteNetworkOptions options;
  options.sites = 3;
  options.exchange = sites::MixingKind::gossip;
  bool lies = true;
  Liars scene(options, {2}, [&](sites::Message& message, std::vector<std::byte>& payload) {
    return !lies || denies(message, payload);
  });
  scene.rounds(200);
  for (const std::size_t i : {0U, 1U}) {
    CHECK(scene.seen(i, 2).habit == PeerHabit::confirms_nothing);
    CHECK(scene.seen(i, 2).moved == 0);
    CHECK(scene.seen(i, 1 - i).habit == PeerHabit::none);
  }
  // It gets the whole copy, and its own counts again.
  lies = false;
  scene.rounds(4);
  for (const std::size_t i : {0U, 1U}) {
    CHECK(scene.seen(i, 2).habit == PeerHabit::none);
    CHECK(scene.seen(i, 2).receipts > 2);
  }
  CHECK(scene.applied(0, 1) == 204);
}

TEST_CASE("core: in gossip one that says it hears nobody leads nobody") {
  SiteNetworkOptions options;
  options.sites = 4;
  options.exchange = sites::MixingKind::gossip;
  Liars scene(options, {3}, [](sites::Message& message, std::vector<std::byte>&) {
    if (auto* hello = std::get_if<sites::Hello>(&message)) {
      hello->hears = false;
    }
    return true;
  });
  scene.rounds(20);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(scene.seen(i, 3).moved == 0);
    CHECK(scene.applied(3, i) > 0);
    CHECK(scene.applied((i + 1) % 3, i) == 20);
  }
}

TEST_CASE("core: the mass that is told is the mass after collecting") {
  SiteNetworkOptions options;
  options.sites = 5;
  SiteNetwork network(options);
  network.connect_all();
  network.deliver_all();
  network.run_in_step(10);
  const double before = network.state(0).mass;
  REQUIRE(network.site(0).try_begin(true));
  REQUIRE(network.site(0).offer().ok());
  CHECK(network.state(0).mass < before / 2);  // on its way to four others
  CHECK(network.state(0).settled_mass == before);
}

}  // namespace sotto::test::mass_liars_test
