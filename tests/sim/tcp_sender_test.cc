// The sender alone, with packets that the test loses.
#include <sotto/sim/network/tcp/tcp_sender.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/sim/network/tcp/round_trip_estimate.h>

#include "support/seed.h"

namespace sotto::test::tcp_sender_test {

namespace {

constexpr SimTime kMs = 1'000'000;
constexpr SimTime kTrip = 100 * kMs;

TcpSender sender_of(Congestion congestion = Congestion::reno, int window = 10) {
  return TcpSender({.window = window,
                    .packet_bytes = 1'000,
                    .window_decays = true,
                    .round_trip = kTrip,
                    .congestion = congestion});
}

std::vector<SentPacket> all(TcpSender& sender, SimTime now) {
  std::vector<SentPacket> sent;
  while (const auto packet = sender.next(now)) {
    sent.push_back(*packet);
  }
  return sent;
}

void hear(TcpSender& sender, const SentPacket& packet, SimTime now) {
  const ArrivedPacket arrived = {packet.number, packet.transmission};
  sender.hear({&arrived, 1}, now);
}

}  // namespace

TEST_CASE("a window of packets leaves, and doubles in a round trip") {
  for (const Congestion congestion : {Congestion::reno, Congestion::cubic}) {
    CAPTURE(congestion_name(congestion));
    TcpSender sender = sender_of(congestion);
    sender.write(1e6, 0);
    const auto sent = all(sender, 0);
    REQUIRE(sent.size() == 10);
    CHECK(sent.back().number == 9);
    CHECK(sent.back().bytes == 1'000);
    for (const SentPacket& packet : sent) {
      hear(sender, packet, kTrip);
    }
    CHECK(all(sender, kTrip).size() == 20);
    CHECK(sender.window() == 20);
  }
}

TEST_CASE(
    "a packet counts as lost when three that left later have arrived, and halves the window") {
  TcpSender sender = sender_of();
  sender.write(1e6, 0);
  const auto sent = all(sender, 0);
  CHECK(sent.size() == 10);
  SentPacket again;
  for (std::size_t i = 1; i < 10; ++i) {
    hear(sender, sent[i], kTrip + static_cast<SimTime>(i));
    for (const SentPacket& packet : all(sender, kTrip + static_cast<SimTime>(i))) {
      again = packet.number == 0 ? packet : again;
    }
    CHECK(sender.sent_again() == (i < 3 ? 0 : 1));
  }
  REQUIRE(again.transmission > 0);
  hear(sender, again, 2 * kTrip);
  CHECK(sender.window() == 5);
  CHECK(sender.timeouts() == 0);
}

TEST_CASE("with fewer than three behind it a packet waits for a quarter of a round trip") {
  TcpSender sender = sender_of();
  sender.write(2'000, 0);
  const auto sent = all(sender, 0);
  REQUIRE(sent.size() == 2);
  hear(sender, sent[1], kTrip);
  CHECK(all(sender, kTrip).empty());
  CHECK(sender.wakes_at() == kTrip + kTrip / 4);
  sender.wake(sender.wakes_at(), false);
  const auto again = all(sender, kTrip + kTrip / 4);
  REQUIRE(again.size() == 1);
  CHECK(again[0].number == 0);
}

TEST_CASE("a tail that is lost is probed once, then time-outs double up to two minutes") {
  TcpSender sender = sender_of();
  sender.write(1'000, 0);
  CHECK(all(sender, 0).size() == 1);
  // A young connection's time-out is three round trips; the probe comes in its place.
  SimTime due = 300 * kMs;
  CHECK(sender.wakes_at() == due);
  sender.wake(due, false);
  CHECK(all(sender, due).size() == 1);
  CHECK(sender.timeouts() == 0);
  SimTime timeout = 300 * kMs;
  for (int k = 1; k <= 12; ++k) {
    CAPTURE(k);
    CHECK(sender.wakes_at() == due + timeout);
    due = sender.wakes_at();
    sender.wake(due, false);
    CHECK(sender.timeouts() == k);
    CHECK(all(sender, due).size() == 1);
    CHECK(sender.window() == 1);
    timeout = std::min(2 * timeout, kLongestTimeout);
  }
}

TEST_CASE("the window comes back where all that was sent again had arrived") {
  TcpSender sender = sender_of();
  sender.write(10'000, 0);
  const auto sent = all(sender, 0);
  REQUIRE(sent.size() == 10);
  // Acknowledgements are lost: the probe, then a time-out.
  SimTime now = sender.wakes_at();
  sender.wake(now, false);
  CHECK(all(sender, now).size() == 1);
  now = sender.wakes_at();
  sender.wake(now, false);
  const auto again = all(sender, now);
  REQUIRE(again.size() == 1);
  CHECK(sender.window() == 1);
  std::vector<ArrivedPacket> arrived;
  for (const SentPacket& packet : sent) {
    arrived.push_back({packet.number, packet.transmission});
  }
  arrived.push_back({again[0].number, again[0].transmission});
  sender.hear(arrived, now + kTrip);
  CHECK(sender.window() >= 10);
  CHECK(sender.in_flight() == 0);
}

TEST_CASE("no time passes for packets that wait in their queue") {
  TcpSender sender = sender_of();
  sender.write(1'000, 0);
  CHECK(all(sender, 0).size() == 1);
  sender.wake(sender.wakes_at(), true);
  CHECK(sender.wakes_at() == kNever);
  sender.queue_drained(5'000 * kMs);
  CHECK(sender.wakes_at() == 5'300 * kMs);
}

TEST_CASE("BBR paces what leaves") {
  TcpSender sender = sender_of(Congestion::bbr);
  sender.write(1e6, 0);
  SimTime now = 0;
  CHECK(all(sender, now).size() == 1);
  // 2.885 windows in a round trip at first.
  CHECK(to_seconds(sender.wakes_at()) == doctest::Approx(0.1 / 28.85).epsilon(1e-3));
}

TEST_CASE("names of congestion controls are those of Linux") {
  for (const Congestion congestion : {Congestion::reno, Congestion::cubic, Congestion::bbr}) {
    CHECK(parse_congestion(congestion_name(congestion)) == congestion);
  }
  CHECK_THROWS_WITH(parse_congestion("vegas"), "'vegas' is none of reno, cubic and bbr");
}

TEST_CASE("what waited for the repair of another packet does not make the time-out longer") {
  TcpSender sender = sender_of();
  sender.write(10'000, 0);
  const auto sent = all(sender, 0);
  for (std::size_t i = 1; i < 10; ++i) {
    hear(sender, sent[i], kTrip);
  }
  // The packet that was lost is lost again and again, and arrives after twenty time-outs' time.
  auto again = all(sender, kTrip);
  REQUIRE(again.size() == 1);
  SimTime now = kTrip;
  while (now < 6'000 * kMs) {
    now = sender.wakes_at();
    sender.wake(now, false);
    for (const SentPacket& packet : all(sender, now)) {
      again = {packet};
    }
  }
  hear(sender, again[0], now + kTrip);
  now += 2 * kTrip;
  sender.write(1'000, now);
  CHECK(all(sender, now).size() == 1);
  CHECK(sender.wakes_at() - now <= 500 * kMs);
}

TEST_CASE("a time-out doubles up to its bound, however long the round trip") {
  const std::uint64_t seed = test::drawn_seed();
  CAPTURE(seed);
  RandomStream random({.seed = seed, .purpose = Purpose::test});
  for (int trial = 0; trial < 1000; ++trial) {
    // From a microsecond to eleven days.
    const auto first = static_cast<SimTime>(std::pow(10.0, 3 + 12 * random.uniform()));
    const RoundTripEstimate estimate(first);
    SimTime last = estimate.timeout(0);
    CHECK(last == std::min(kLongestTimeout, first + std::max(2 * first, kTimeoutMargin)));
    for (int failures = 1; failures < 64; ++failures) {
      const SimTime next = estimate.timeout(failures);
      CHECK(next == (failures <= 20 ? std::min(kLongestTimeout, 2 * last) : last));
      last = next;
    }
  }
}

}  // namespace sotto::test::tcp_sender_test
