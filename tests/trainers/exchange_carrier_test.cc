// The communication half of a driver, without a driver.
#include <condition_variable>
#include <deque>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "../../trainers/internal/driver/exchange_carrier.h"
#include "scripted_transport.h"
#include "support/scratch.h"

namespace sotto::test::exchange_carrier_test {

using internal::ExchangeCarrier;

namespace {

/// Keeps what a carrier gives back.
struct Owner {
  explicit Owner(std::deque<TransportEvent> events, DriverOptions with = {})
      : script(std::move(events)),
        options(std::move(with)),
        carrier(script, options,
                {.complete = [this](const Exchange& exchange) { return take(exchange); },
                 .failed = [this](Status status) { end(std::move(status)); }}) {}

  static Exchange exchange(Round round) {
    static std::vector<std::byte> room(100);
    return {.tag = {round, 0, 0}, .sends = {{kPeer, room}}, .receives = {{kPeer, room}}};
  }
  Status hand_over(Round round) {
    Exchange next = exchange(round);
    return carrier.hand_over(next, false);
  }
  Status take(const Exchange& exchange) {
    const std::lock_guard lock(mutex);
    rounds.push_back(exchange.tag.round);
    bytes.push_back(exchange.receives.front().bytes);
    changed.notify_all();
    return exchange.tag.round < further ? hand_over(exchange.tag.round + 1) : refusal;
  }
  void end(Status status) {
    const std::lock_guard lock(mutex);
    faults.push_back(std::move(status));
    changed.notify_all();
  }
  /// Waits until so many exchanges or faults have come.
  void await(std::size_t exchanges, std::size_t ends) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return rounds.size() >= exchanges && faults.size() >= ends; });
  }

  ScriptedTransport script;
  DriverOptions options;
  Round further = 0;  ///< the last round that follows from the one before
  Status refusal;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Round> rounds;
  std::vector<std::size_t> bytes;
  std::vector<Status> faults;
  ExchangeCarrier carrier;
};

const DriverOptions kHere = {.rank = 3, .overlap = false, .timeout = std::chrono::milliseconds(20)};
const DriverOptions kThread = {.rank = 3, .timeout = std::chrono::hours(1)};

}  // namespace

TEST_CASE("a carrier gives exchanges back with their frames, and carries those that follow") {
  for (const DriverOptions& options : {kHere, kThread}) {
    CAPTURE(options.overlap);
    Owner owner({frame(5), done(), frame(6), done(), frame(7), done()}, options);
    CHECK(owner.carrier.threaded() == options.overlap);
    CHECK_FALSE(owner.carrier.on_own_thread());
    owner.further = 2;
    REQUIRE(owner.hand_over(0).ok());
    if (!options.overlap) {
      CHECK(owner.rounds.empty());  // posted, and no more
      owner.carrier.carry();
    }
    owner.await(3, 0);
    CHECK(owner.rounds == std::vector<Round>{0, 1, 2});
    CHECK(owner.bytes == std::vector<std::size_t>{5, 6, 7});
    CHECK(owner.faults.empty());
  }
}

TEST_CASE("the first fault is told once, with node and round, and ends what is under way") {
  for (const DriverOptions& options : {kHere, kThread}) {
    CAPTURE(options.overlap);
    Owner owner({lost(kPeer, true), frame(5), done()}, options);
    REQUIRE(owner.hand_over(4).ok());
    if (!options.overlap) {
      owner.carrier.carry();
    }
    owner.await(0, 1);
    owner.carrier.stop();
    REQUIRE(owner.faults.size() == 1);
    CHECK(owner.faults[0].fault() == Fault::peer_lost);
    CHECK(owner.faults[0].message() == "node 3, round 4: node 7 is lost: connection reset");
    CHECK(owner.rounds.empty());
  }
}

TEST_CASE("a fault of the owner's is told back as it is") {
  Owner owner({frame(5), done()}, kHere);
  owner.refusal = {Fault::malformed, "too short"};
  REQUIRE(owner.hand_over(0).ok());
  owner.carrier.carry();
  REQUIRE(owner.faults.size() == 1);
  CHECK(owner.faults[0].message() == "too short");
}

TEST_CASE("silence is a fault that names the node, and waits are asked for their reasons") {
  Owner silent({}, kHere);
  REQUIRE(silent.hand_over(0).ok());
  silent.carrier.carry();
  REQUIRE(silent.faults.size() == 1);
  CHECK(silent.faults[0].message() == "node 3: round 0: rank 7 awaited (the timeout is 0.02 s)");

  DriverOptions asks = kThread;
  asks.overlap = false;
  std::vector<Rank> asked;
  asks.wait_fault = [&](std::span<const Rank> ranks) {
    asked.assign(ranks.begin(), ranks.end());
    return Status(Fault::unexpected, "it trains something else");
  };
  Owner curious({}, asks);
  REQUIRE(curious.hand_over(0).ok());
  curious.carrier.carry();
  REQUIRE(curious.faults.size() == 1);
  CHECK(asked == std::vector<Rank>{kPeer});
  CHECK(curious.faults[0].message() == "node 3, round 0: it trains something else");
}

TEST_CASE("a wait is asked whether another node gave up, whatever else it is asked for") {
  DriverOptions told = kThread;
  told.overlap = false;
  told.given_up = [] { return Status(Fault::peer_lost, "node 5: out of memory"); };
  const auto cause_of = [](const DriverOptions& options) {
    Owner owner({}, options);
    REQUIRE(owner.hand_over(0).ok());
    owner.carrier.carry();
    REQUIRE(owner.faults.size() == 1);
    return owner.faults[0].message();
  };
  CHECK(cause_of(told) == "node 5: out of memory");
  told.wait_fault = [](std::span<const Rank>) { return Status(Fault::unexpected, "it waits"); };
  CHECK(cause_of(told) == "node 5: out of memory");
}

TEST_CASE("a lost neighbour is found while nothing is under way, and by node 0's peers any") {
  Owner owner({lost(kPeer, false)}, kHere);
  CHECK(owner.carrier.lost_neighbour(5).ok());
  CHECK(owner.carrier.lost_neighbour(kPeer).message() == "node 7 is lost: connection reset");
  CHECK(owner.carrier.lost_neighbour(0).fault() == Fault::peer_lost);

  Owner busy({lost(kPeer, false)}, kThread);
  busy.script.hold(true);
  REQUIRE(busy.hand_over(0).ok());
  CHECK(busy.carrier.lost_neighbour(kPeer).ok());  // the thread that carries notices
}

TEST_CASE("a carrier stops in the middle of an exchange, and again") {
  Owner owner({}, kThread);
  REQUIRE(owner.hand_over(0).ok());
  owner.carrier.stop();
  owner.carrier.stop();
  CHECK(owner.rounds.empty());
}

}  // namespace sotto::test::exchange_carrier_test
