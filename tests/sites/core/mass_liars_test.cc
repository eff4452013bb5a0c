// Sites beside neighbours that lie about mass: who is named, who is not, and what masses become.
#include <cstddef>
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

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

}  // namespace sotto::test::mass_liars_test
