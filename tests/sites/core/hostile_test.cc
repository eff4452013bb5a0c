// A peer that is authorised and malicious: whatever it sends changes nothing but the count of its
// offences.
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "optim/cluster.h"
#include "sites/core/site_network.h"

namespace sotto::test::hostile_test {

using sites::Incarnation;
using sites::Parcel;
using sites::Receipt;
using sites::Sequence;

namespace {

constexpr std::size_t kDimension = 4;

/// Site 0 is honest and knows 1 and 2; 1 will lie.
struct Scene {
  explicit Scene(sites::MixingKind exchange = sites::MixingKind::push_sum)
      : network({.sites = 3, .dimension = kDimension, .exchange = exchange}) {
    network.connect_all();
    network.deliver_all();
    network.run_in_step(3);
    for (std::size_t i = 0; i < 3; ++i) {
      network.advance(i, true);
    }
    network.deliver_all();  // all have offered, and nobody has collected
    victim = network.place(0, 1);
    liar = network.state(1).incarnation;
    next = network.peers(1)[network.place(1, 0)].sent + 1;
    round = network.peers(1)[network.place(1, 0)].round + 1;
  }

  std::vector<std::byte> saved() {
    ByteBuffer out;
    network.site(0).save(out);
    return std::move(out).take();
  }
  PeerState peer() { return network.peers(0)[victim]; }
  Status say(std::span<const std::byte> message) {
    return network.site(0).receive(victim, SharedBytes::copy(message));
  }
  Status parcel(std::span<const std::byte> payload) {
    return say(
        encode(Parcel{.incarnation = liar, .sequence = next, .round = round, .payload = payload}));
  }

  SiteNetwork network;
  std::size_t victim = 0;
  Incarnation liar = 0;
  Sequence next = 0;
  Round round = 0;
};

/// What `lie` sends is refused at once, and changes nothing.
void check_refused(const std::function<Status(Scene&)>& lie,
                   sites::MixingKind exchange = sites::MixingKind::push_sum) {
  Scene scene(exchange);
  const auto before = scene.saved();
  const Status status = lie(scene);
  CAPTURE(status.message());
  CHECK_FALSE(status.ok());
  CHECK(status.message().find("site-1 sent") != std::string::npos);
  CHECK(scene.saved() == before);
  CHECK(scene.peer().offences == 1);
  CHECK_FALSE(scene.peer().up);
  const auto released = scene.network.site(0).released();
  REQUIRE_FALSE(released.empty());
  CHECK(released.back().hang_up);
  CHECK(released.back().peer == scene.victim);
  // Whatever comes now is dropped, and the other neighbour is served.
  CHECK(lie(scene).ok());
  CHECK(scene.peer().offences == 1);
  CHECK(scene.network.site(0).complete());
  CHECK(scene.network.site(0).collect());
}

std::vector<std::byte> share(double share, double mass) {
  ByteBuffer out;
  out.write(share);
  out.write(mass);
  const std::vector<float> model(kDimension, 1.0F);
  out.write_span(std::span<const float>(model));
  return std::move(out).take();
}

std::vector<std::byte> honest_share() { return share(0.25, 0.25); }

}  // namespace

TEST_CASE("core: bytes that are no message") {
  check_refused([](Scene& scene) { return scene.say({}); });
  const std::vector<std::byte> noise(100, std::byte{0xff});
  check_refused([&](Scene& scene) { return scene.say(noise); });
}

TEST_CASE(
    "core: bad input: weights: a share or a mass NaN, Inf, negative, 0, -0, denormal, 1e308") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double bad :
       {std::nan(""), kInfinity, -kInfinity, -0.25, 0.0, -0.0, 5e-324, 1e-30, 1e308, 2000.0}) {
    CAPTURE(bad);
    check_refused([&](Scene& scene) { return scene.parcel(share(bad, 0.25)); });
    check_refused([&](Scene& scene) { return scene.parcel(share(0.25, bad)); });
  }
  check_refused([](Scene& scene) { return scene.parcel(share(1.0001, 0.25)); });
}

TEST_CASE("core: parcels that are too short or too long") {
  check_refused([](Scene& scene) { return scene.parcel({}); });
  auto payload = honest_share();
  payload.resize(15);
  check_refused([&](Scene& scene) { return scene.parcel(payload); });
  payload.resize(5000);
  check_refused([&](Scene& scene) { return scene.parcel(payload); });
}

TEST_CASE("core: parcels out of order, of another incarnation, or too many") {
  const auto payload = honest_share();
  check_refused([&](Scene& scene) {
    scene.next += 1;
    return scene.parcel(payload);
  });
  check_refused([&](Scene& scene) {
    scene.next = sites::kMostCount;
    return scene.parcel(payload);
  });
  check_refused([&](Scene& scene) {
    scene.liar += 1;
    return scene.parcel(payload);
  });
  check_refused([&](Scene& scene) {
    scene.round -= 1;
    return scene.parcel(payload);
  });
  Scene scene;
  CHECK(scene.peer().pending == 1);  // and the window is 2
  CHECK(scene.parcel(payload).ok());
  ++scene.next;
  ++scene.round;
  CHECK(scene.parcel(payload).fault() == Fault::unexpected);
  CHECK(scene.peer().pending == 2);
  CHECK(scene.peer().offences == 1);
}

TEST_CASE("core: receipts for what was never sent, or that go back") {
  const auto receipt = [](Scene& scene, Sequence applied, Round round) {
    return scene.say(encode(Receipt{
        .incarnation = scene.network.state(0).incarnation, .applied = applied, .round = round}));
  };
  check_refused([&](Scene& scene) { return receipt(scene, scene.peer().sent + 1, scene.round); });
  check_refused([&](Scene& scene) { return receipt(scene, sites::kMostCount, scene.round); });
  check_refused([&](Scene& scene) { return receipt(scene, 0, scene.round); });
  check_refused(
      [&](Scene& scene) { return receipt(scene, scene.peer().receipts, scene.peer().round - 1); });
  check_refused([&](Scene& scene) {
    return scene.say(
        encode(Receipt{.incarnation = scene.liar, .applied = 0, .round = scene.round}));
  });
  check_refused([](Scene& scene) {  // of rounds that have one step
    return scene.say(encode(Receipt{.incarnation = scene.network.state(0).incarnation,
                                    .applied = scene.peer().receipts,
                                    .round = scene.round,
                                    .own_steps = 2}));
  });
}

TEST_CASE("core: a second hello, and a model that nobody asked for") {
  check_refused([](Scene& scene) {
    return scene.say(encode(sites::Hello{.incarnation = scene.liar, .life = 1}));
  });
  // A hello of one that has begun asks for none.
  Scene scene;
  scene.network.disconnect(0, 1);
  scene.network.connect(0, 1);
  scene.network.deliver_all();
  const std::vector<float> before(scene.network.node(0).x);
  const Status status = scene.say(encode(sites::Model{
      .incarnation = scene.liar, .round = 1, .values = std::vector<float>(kDimension)}));
  CHECK(status.fault() == Fault::unexpected);
  CHECK(scene.peer().offences == 1);
  CHECK(same_bits(scene.network.node(0).x, before));
}

TEST_CASE("core: anything before the hello") {
  for (const bool receipt : {false, true}) {
    Scene scene;
    scene.network.disconnect(0, 1);
    scene.network.site(0).peer_up(scene.victim);
    const auto before = scene.saved();
    const auto payload = honest_share();
    const Status status =
        receipt ? scene.say(encode(Receipt{.incarnation = scene.network.state(0).incarnation,
                                           .round = scene.round}))
                : scene.parcel(payload);
    CHECK(status.fault() == Fault::unexpected);
    CHECK(scene.saved() == before);
    CHECK(scene.peer().offences == 1);
  }
}

TEST_CASE("core: parcels from a site that is not heard") {
  SiteNetworkOptions options;
  options.sites = 2;
  options.dimension = kDimension;
  options.edge = [](std::size_t from, std::size_t /*to*/) { return from == 0; };
  SiteNetwork network(options);
  network.connect_all();
  network.deliver_all();
  network.run_in_step(2);
  const auto payload = honest_share();
  const Status status =
      network.site(0).receive(0, encode(Parcel{.incarnation = network.state(1).incarnation,
                                               .sequence = 1,
                                               .round = 9,
                                               .payload = payload}));
  CHECK(status.fault() == Fault::unexpected);
}

TEST_CASE("core: what only decoding shows costs an offence in collect, and is not applied") {
  constexpr float kHuge = std::numeric_limits<float>::max();
  auto nan = honest_share();
  const float bad = std::nanf("");
  std::memcpy(nan.data() + 16, &bad, sizeof bad);
  auto ragged = honest_share();
  ragged.pop_back();
  auto overflow = share(1, 0x1p-60);  // x / ω beyond float32
  std::memcpy(overflow.data() + 16, &kHuge, sizeof kHuge);
  std::memcpy(overflow.data() + 20, &kHuge, sizeof kHuge);
  for (const auto& payload : {nan, ragged}) {
    Scene scene;
    // The honest parcel of this round goes in first.
    REQUIRE(scene.parcel(payload).ok());
    const double mass = scene.network.state(0).mass;
    REQUIRE(scene.network.site(0).collect().ok());
    if (scene.peer().offences == 0) {  // it is of the next round
      for (std::size_t i = 0; i < 3; ++i) {
        if (i > 0) {
          scene.network.collect(i);
        }
      }
      scene.network.train(0);
      REQUIRE(scene.network.site(0).collect().ok());
    }
    CHECK(scene.peer().offences == 1);
    CHECK(scene.network.state(0).mass < mass + 1);
    for (const float value : scene.network.site(0).parameters()) {
      CHECK(std::isfinite(value));
    }
  }
  Scene scene;
  REQUIRE(scene.parcel(overflow).ok());
  REQUIRE(scene.network.site(0).collect().ok());
  for (const float value : scene.network.site(0).parameters()) {
    CHECK(std::isfinite(value));
  }
}

TEST_CASE("core: a bad parcel that outlives its channel does not keep the next one shut") {
  auto payload = honest_share();
  payload.pop_back();
  Scene scene;
  REQUIRE(scene.network.site(0).collect().ok());
  REQUIRE(scene.parcel(payload).ok());
  scene.network.disconnect(0, 1);
  scene.network.train(0);
  REQUIRE(scene.network.site(0).collect().ok());
  CHECK(scene.peer().offences == 1);
  for (const Released& released : scene.network.site(0).released()) {
    CHECK(released.peer != scene.victim);
  }
  // A hello goes out on it; which answer suits it is for the two to see.
  scene.network.site(0).peer_up(scene.victim);
  const auto greeting = scene.network.site(0).released();
  REQUIRE(greeting.size() == 1);
  const auto hello = sites::parse(greeting[0].message, kDimension);
  REQUIRE(hello.ok());
  CHECK(std::holds_alternative<sites::Hello>(*hello));
}

TEST_CASE("core: a parcel that is sent again is not applied again") {
  Scene scene;
  const auto payload = honest_share();
  REQUIRE(scene.parcel(payload).ok());
  const auto pending = scene.peer().pending;
  for (int k = 0; k < 10; ++k) {
    CHECK(scene.parcel(payload).ok());  // known by its number
  }
  CHECK(scene.peer().pending == pending);
  CHECK(scene.peer().offences == 0);
}

TEST_CASE("core: a peer that promises parcels, or rounds, does not hold others up for ever") {
  Scene scene;
  scene.network.disconnect(0, 1);
  scene.network.site(0).peer_up(scene.victim);
  REQUIRE(scene
              .say(encode(sites::Hello{.incarnation = scene.liar,
                                       .life = 1,
                                       .has_model = true,
                                       .hears = true,
                                       .tells = true,
                                       .round = scene.round,
                                       .degree = 2,
                                       .yours = scene.network.state(0).incarnation,
                                       .applied = scene.peer().receipts,
                                       .oldest = 1,
                                       .next = 1000}))
              .ok());
  CHECK_FALSE(scene.network.site(0).complete());
  int stalled = 0;
  for (int k = 0; k < 10; ++k) {
    stalled += scene.network.site(0).complete() ? 0 : 1;
    scene.network.collect(0);
    scene.network.collect(2);
    REQUIRE(scene.network.site(0).try_begin(true));
    scene.network.advance(0, true);
    scene.network.advance(2, true);
    scene.network.deliver_all();
  }
  CHECK(stalled < 8);
  CHECK(scene.network.site(0).complete());
}

TEST_CASE("core: gossip, public copies that cannot be") {
  const auto copy = [](std::uint64_t version, std::uint64_t changes, std::size_t floats) {
    ByteBuffer out;
    out.write(version);
    out.write(changes);
    for (std::size_t k = 0; k < floats; ++k) {
      out.write(1.0F);
    }
    return std::move(out).take();
  };
  const auto exchange = sites::MixingKind::gossip;
  check_refused([&](Scene& scene) { return scene.parcel(copy(1, 1, kDimension - 1)); }, exchange);
  check_refused([&](Scene& scene) { return scene.parcel(copy(1, 1, kDimension + 1)); }, exchange);
  check_refused([&](Scene& scene) { return scene.parcel(copy(1, ~0ULL, kDimension)); }, exchange);
  check_refused([&](Scene& scene) { return scene.parcel({}); }, exchange);
}

TEST_CASE("core: gossip, a change of another copy is not used, and the whole one asked for") {
  Scene scene(sites::MixingKind::gossip);
  ByteBuffer out;
  out.write(std::uint64_t{0x1234});
  out.write(std::uint64_t{77});
  const std::vector<float> change(kDimension, 1e6F);
  out.write_span(std::span<const float>(change));
  REQUIRE(scene.parcel(out.bytes()).ok());
  scene.network.collect(0);
  scene.network.collect(1);
  scene.network.collect(2);
  scene.network.train(0);
  scene.network.collect(0);
  CHECK(scene.peer().offences == 0);
  CHECK(scene.network.site(0).public_copy(scene.victim).empty());
  for (const float value : scene.network.site(0).parameters()) {
    CHECK(std::fabs(value) < 100);
  }
  scene.network.train(0);
  bool asked = false;
  for (const Released& released : scene.network.site(0).released()) {
    const auto bytes = released.bytes();
    const auto message = sites::parse(bytes, kDimension);
    if (message.ok() && released.peer == scene.victim) {
      const auto* receipt = std::get_if<Receipt>(&*message);
      asked = asked || (receipt != nullptr && receipt->wants_whole);
    }
  }
  CHECK(asked);
}

TEST_CASE("core: one that asks in each round for whole copies gets them after ever more rounds") {
  sites::Neighbour peer;
  int whole = 0;
  for (Round round = 1; round <= 1000; ++round) {
    const bool due = peer.out.behind();
    whole += due ? 1 : 0;
    const Sequence number = peer.out.push({.round = round, .mass = 0, .payload = nullptr}, due);
    peer.confirmed(number);
    peer.wish_whole(number, round);
  }
  CHECK(whole > 10);
  CHECK(whole < 30);
}

}  // namespace sotto::test::hostile_test
