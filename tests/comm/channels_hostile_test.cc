// Channels against those who must not be heard, and against a listed peer that breaks every rule.
#ifdef SOTTO_HAVE_ZMQ
#include <doctest/doctest.h>

#include <sotto/base/philox.h>

#include "../../comm/zmq/channels/frame_quota.h"
#include "nodes.h"
#include "raw_curve.h"
#include "raw_site.h"

namespace sotto::test::channels_hostile_test {

using namespace sotto::internal::channel_wire;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kMost = ~std::uint64_t{0};

/// A real rank 0 that lets in again soon, and a raw rank 1.
struct RawPair {
  explicit RawPair(std::chrono::milliseconds pause = 100ms) : a(quick(sites, pause)), raw(sites) {}
  static ChannelOptions quick(const Sites& sites, std::chrono::milliseconds pause) {
    auto options = sites.options(0);
    options.offence_pause = pause;
    return options;
  }
  void meet() {
    raw.meet();
    a.expect_up(1);
    raw.await_room(2 * cost_of(Sites::kMostMessage));
  }
  void await_offences(std::uint64_t count) {
    for (const auto deadline = generous(); a.traffic(1).offences < count;) {
      REQUIRE_FALSE(deadline.expired());
      std::this_thread::yield();
    }
    CHECK(a.traffic(1).offences == count);
  }
  /// One message that a rank 1 of good faith sends.
  void expect_delivery() {
    const auto message = message_of(9, 1000);
    raw.send(Chunk{0, {1000, 0, message}});
    a.expect_message(1, message);
  }

  Sites sites{2};
  SiteEnd a;
  RawSite raw;
};

struct Offence {
  std::string_view reason;
  std::vector<Bytes> messages;
};

std::vector<Offence> offences() {
  const Bytes ten(10);
  std::vector<Bytes> many(3 + Sites::kMostMessage * 2 / kMessageCost);
  for (std::size_t i = 0; i < many.size(); ++i) {
    many[i] = write(Chunk{i, {0, 0, {}}});
  }
  auto version = write(Greeting{8});
  version[1] = std::byte{9};
  return {{"kind 99 is unknown", {Bytes(1, std::byte{99})}},
          {"kind 0 is unknown", {Bytes{}}},
          {"wrong length", {Bytes(9, std::byte{4})}},
          {"version 9", {version}},
          {"without a number", {write(Greeting{0})}},
          {"greeted twice", {write(Greeting{7})}},
          {"greeted twice", {write(Greeting{8})}},
          {"accepted twice", {write(Accept{3})}},
          {"does not lie inside", {write(Chunk{0, {5, 0, ten}})}},
          {"does not lie inside", {write(Chunk{0, {kMost, kMost, ten}})}},
          {"100001 bytes where 100000", {write(Chunk{0, {Sites::kMostMessage + 1, 0, ten}})}},
          {"bytes where 100000", {write(Chunk{0, {std::uint64_t{1} << 62, 0, ten}})}},
          {"was to begin", {write(Chunk{0, {100, 10, ten}})}},
          {"was to begin", {write(Chunk{5, {100, 0, ten}})}},
          {"was due", {write(Chunk{0, {100, 0, ten}}), write(Chunk{0, {100, 5, ten}})}},
          {"was due", {write(Chunk{0, {100, 0, ten}}), write(Chunk{0, {100, 0, ten}})}},
          {"was due", {write(Chunk{0, {100, 0, ten}}), write(Chunk{0, {200, 10, ten}})}},
          {"was due", {write(Chunk{0, {100, 0, ten}}), write(Chunk{1, {100, 0, ten}})}},
          {"receipt for 1 bytes", {write(Receipt{1, 0})}},
          {"receipt for", {write(Receipt{0, 5}), write(Receipt{0, 4})}},
          {"were left to it", many}};
}

}  // namespace

TEST_CASE(
    "authorised but malicious: each broken rule ends the channel, is counted, and the peer is "
    "let in again") {
  RawPair pair;
  std::uint64_t count = 0;
  for (const Offence& offence : offences()) {
    CAPTURE(offence.reason);
    pair.meet();
    for (const Bytes& message : offence.messages) {
      pair.raw.send_bytes(message);
    }
    pair.await_offences(++count);
    std::size_t delivered = 0;
    for (;; ++delivered) {
      const auto event = pair.a.next();
      if (event.kind == ChannelEvent::Kind::down) {
        CHECK_MESSAGE(event.reason.find(offence.reason) != std::string::npos, event.reason);
        break;
      }
      REQUIRE(event.kind == ChannelEvent::Kind::message);
      CHECK(event.message.empty());
    }
    CHECK(delivered < offence.messages.size());
  }
  pair.meet();
  pair.expect_delivery();
}

TEST_CASE("authorised but malicious: small messages beyond the quota end the channel") {
  // Signs of life cost no allowance, and each of them costs work.
  RawPair pair;
  pair.meet();
  const Bytes sign = write(Receipt{0, 0});
  constexpr auto kFlood = static_cast<std::size_t>(20 * internal::FrameQuota::kBurst);
  std::size_t sent = 0;
  for (; sent < kFlood && pair.a.traffic(1).offences == 0; ++sent) {
    pair.raw.send_bytes(sign);
  }
  pair.await_offences(1);
  pair.a.expect_down(1, "more small messages");
  pair.meet();
  pair.expect_delivery();
}

TEST_CASE("authorised but malicious: small messages before both sides have accepted") {
  // An acceptance of no session of this side's: the channel does not open, and nothing is used.
  RawPair pair;
  pair.raw.connect();
  pair.raw.send(Greeting{7});
  pair.raw.send(Accept{1});
  const Bytes sign = write(Receipt{99, 99});
  constexpr auto kFlood = static_cast<std::size_t>(20 * internal::FrameQuota::kBurst);
  for (std::size_t sent = 0; sent < kFlood && pair.a.traffic(1).offences == 0; ++sent) {
    pair.raw.send_bytes(sign);
  }
  pair.await_offences(1);
  CHECK(pair.a.traffic(1).reason.find("more small messages") != std::string::npos);
}

TEST_CASE("authorised but malicious: small messages on a second connection of its key") {
  RawPair pair;
  pair.meet();
  Outsider rival(fmt::format("tcp://{}", pair.sites.lines()[0].address), keys_of(1));
  rival.send(write(Greeting{9}));
  const Bytes sign = write(Receipt{0, 0});
  constexpr std::size_t kEach = 4096;  // the one that was let in says that it lives
  const auto deadline = generous();
  std::size_t sent = 0;
  for (int times = 0; times < 2; times += rival.times_let_in()) {  // and again after it was cut
    REQUIRE_FALSE(deadline.expired());
    for (std::size_t k = 0; k < kEach; ++k, ++sent) {
      rival.try_send(sign);
    }
    pair.raw.send_bytes(sign);
  }
  CHECK(sent > static_cast<std::size_t>(internal::FrameQuota::kBurst));
  pair.expect_delivery();  // the channel stands
  CHECK(pair.a.traffic(1).ups == 1);
  CHECK(pair.a.traffic(1).offences == 0);
}

TEST_CASE("a quota of small frames: who keeps to it is not slowed, who does not has to pause") {
  using internal::FrameQuota;
  const FrameQuota::Time begin{};
  FrameQuota quota(begin);
  for (int second = 1; second <= 100; ++second) {  // all that is allowed, for ever
    for (int k = 0; k < static_cast<int>(FrameQuota::kPerSecond); ++k) {
      quota.take(begin + std::chrono::seconds(second));
      CHECK_FALSE(quota.spent(begin + std::chrono::seconds(second)));
    }
  }
  const auto now = begin + 100s;
  for (int k = 0; k < static_cast<int>(FrameQuota::kBurst); ++k) {
    quota.take(now);
  }
  CHECK(quota.spent(now));
  CHECK_FALSE(quota.far_beyond());
  CHECK_FALSE(quota.spent(now + 2s));
  for (int k = 0; k < static_cast<int>(FrameQuota::kBurst); ++k) {
    quota.take(now);
  }
  CHECK(quota.far_beyond());
}

TEST_CASE("authorised but malicious: it is not let in before the pause is over") {
  RawPair pair(1h);
  pair.meet();
  pair.raw.send_bytes(Bytes(3, std::byte{77}));
  pair.a.expect_down(1, "kind 77");
  for (int i = 0; i < 3; ++i) {
    pair.raw.connect();
    pair.raw.send(Greeting{static_cast<std::uint64_t>(10 + i)});
    pair.raw.send(Accept{1});
    pair.a.expect_nothing();
  }
  CHECK(pair.a.traffic(1).ups == 1);
  CHECK(pair.a.traffic(1).offences == 1);
}

TEST_CASE("authorised but malicious: who speaks before both sides have accepted") {
  RawPair pair;
  (void)pair.raw.heard<Greeting>();  // of the session that ends with the offence
  pair.raw.connect();
  pair.raw.send(Greeting{7});
  pair.raw.send(Chunk{0, {10, 0, Bytes(10)}});
  pair.await_offences(1);
  pair.a.expect_nothing();
  pair.meet();
  pair.expect_delivery();
}

TEST_CASE("what belongs to an older session is dropped") {
  RawPair pair;
  pair.raw.connect();
  pair.raw.send(Greeting{7});
  pair.raw.send(Accept{1});  // of a greeting that the site has forgotten
  pair.raw.send(Chunk{0, {10, 0, Bytes(10)}});
  pair.raw.send(Receipt{99, 99});
  pair.raw.accept();
  pair.a.expect_up(1);
  pair.raw.await_room(cost_of(1000));
  pair.expect_delivery();
  CHECK(pair.a.traffic(1).offences == 0);
}

TEST_CASE("replay after reconnect: a new connection begins a new session") {
  RawPair pair;
  pair.meet();
  pair.expect_delivery();
  pair.raw.connect();  // the old one ends
  pair.raw.send(Greeting{8});
  pair.a.expect_down(1, "connect");
  pair.raw.accept();
  pair.a.expect_up(1);
  pair.raw.send(Chunk{1, {10, 0, Bytes(10)}});  // goes on where the old one was
  pair.a.expect_down(1, "broke a rule");
}

TEST_CASE("a frame split at every byte, and a peer that stalls in the middle of one") {
  RawPair pair;
  pair.meet();
  const auto message = message_of(4, 300);
  for (std::size_t at = 0; at < message.size(); ++at) {
    pair.raw.send(Chunk{0, {300, at, std::span(message).subspan(at, 1)}});
  }
  pair.a.expect_message(1, message);
  pair.raw.send(Chunk{1, {300, 0, std::span(message).first(299)}});
  pair.a.expect_nothing();
  pair.raw.send(Chunk{1, {300, 299, std::span(message).last(1)}});
  pair.a.expect_message(1, message);
}

TEST_CASE("random messages of an authorised peer do no harm") {
  const std::uint64_t seed = 77;
  CAPTURE(seed);
  RandomStream random({.seed = seed});
  RawPair pair;
  for (int life = 0; life < 5; ++life) {
    pair.meet();
    for (int i = 0; i < 50; ++i) {
      Bytes garbage(random.below(60));
      for (auto& byte : garbage) {
        byte = static_cast<std::byte>(random.below(3) == 0 ? random.next_u32() : random.below(6));
      }
      pair.raw.send_bytes(garbage);
    }
    for (auto event = pair.a.next(); event.kind != ChannelEvent::Kind::down;) {
      event = pair.a.next();
    }
  }
}

TEST_CASE("unknown key, plain text: no channel, and not one message") {
  const Sites sites(2);
  MetSites met(sites.options(0), sites.options(1));
  const auto endpoint = fmt::format("tcp://{}", sites.lines()[0].address);
  Outsider stranger(endpoint, make_key_pair());
  stranger.send(write(Greeting{7}));
  CHECK_FALSE(stranger.let_in());
  Outsider plain(endpoint, std::nullopt);
  plain.send(write(Greeting{7}));
  CHECK_FALSE(plain.let_in());
  met.a.expect_nothing();
  met.b.send(0, message_of(1, 10));
  met.a.expect_message(1, message_of(1, 10));
}

TEST_CASE("stolen identity: a listed key speaks for its own rank only, whatever route it takes") {
  const Sites sites(3);
  MetSites met(sites.options(0), sites.options(1));
  const auto endpoint = fmt::format("tcp://{}", sites.lines()[0].address);
  RawCurve thief(endpoint, keys_of(2), keys_of(0).public_key);
  thief.claim("Identity", "1");
  REQUIRE(thief.let_in());
  thief.send(write(Greeting{7}));
  thief.send(write(Accept{1}));
  thief.send(write(Chunk{0, {10, 0, Bytes(10)}}));
  Outsider another(endpoint, keys_of(2));
  another.send(write(Bye{}));
  CHECK(another.let_in());
  met.a.expect_nothing();
  met.b.send(0, message_of(1, 10));
  met.a.expect_message(1, message_of(1, 10));
  CHECK(met.a.traffic(1).ups == 1);
}

TEST_CASE("connections without a greeting are ended, also those of listed keys") {
  RawPair pair;
  RawCurve idle(fmt::format("tcp://{}", pair.sites.lines()[0].address), keys_of(1),
                keys_of(0).public_key);
  REQUIRE(idle.let_in());
  idle.connection().read_to_end();
  pair.meet();
  pair.expect_delivery();
}

TEST_CASE("garbage from raw connections does not disturb the channels") {
  const std::uint64_t seed = 20;
  CAPTURE(seed);
  const Sites sites(2);
  MetSites met(sites.options(0), sites.options(1));
  const auto endpoint = fmt::format("tcp://{}", sites.lines()[0].address);
  std::thread attacking([&] {
    RandomStream random({.seed = seed});
    for (int i = 0; i < 100; ++i) {
      Bytes garbage(random.below(4096));
      for (auto& byte : garbage) {
        byte = static_cast<std::byte>(random.next_u32());
      }
      RawConnection(endpoint).write(garbage);
    }
  });
  for (std::uint64_t i = 0; i < 200; ++i) {
    met.b.send(0, message_of(i, 10'000));
    met.a.expect_message(1, message_of(i, 10'000));
    met.a.send(1, message_of(i, 10'000));
    met.b.expect_message(0, message_of(i, 10'000));
  }
  attacking.join();
}
#endif

}  // namespace sotto::test::channels_hostile_test
