// Frames that are here before their receives are posted, where rounds are alike. Every transport
// but nccl does so; over Gloo because the receive was foretold (base/receive_forecast.h).
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "nodes.h"

namespace sotto::test::foretold_test {

namespace {

constexpr std::size_t kBytes = 1000;

std::vector<std::string> transports_that_foretell() {
  auto names = conforming_transports();
  std::erase(names, kFakeNccl);
  return names;
}

/// Runs a sender and a receiver that have three rounds behind them.
void after_three_rounds(const std::string& name,
                        const std::function<void(std::unique_ptr<Transport>, Store&)>& sender,
                        const std::function<void(std::unique_ptr<Transport>, Store&)>& receiver) {
  CAPTURE(name);
  const Graph graph = chain(2);
  const auto store = make_memory_store();
  spawn(2, [&](Rank rank) {
    auto transport = connect(name, options_for(graph, rank, store, kBytes));
    for (Round round = 0; round < 3; ++round) {
      swap_frames(*transport, graph, rank, {.round = round}, kBytes);
    }
    (rank == 0 ? sender : receiver)(std::move(transport), *store);
  });
}

}  // namespace

TEST_CASE("where rounds are alike a frame leaves before its receive is posted") {
  for (const auto& name : transports_that_foretell()) {
    after_three_rounds(
        name,
        [](auto transport, Store& store) {
          swap_frames(*transport, chain(2), 0, {.round = 3}, kBytes);
          REQUIRE(store.set("gone", {}).ok());
          swap_frames(*transport, chain(2), 0, {.round = 4}, kBytes);
        },
        [](auto transport, Store& store) {
          REQUIRE(store.get("gone", generous()).ok());
          swap_frames(*transport, chain(2), 1, {.round = 3}, kBytes);
          swap_frames(*transport, chain(2), 1, {.round = 4}, kBytes);
        });
  }
}

TEST_CASE("a frame that came before its receive is there after its sender has left") {
  for (const auto& name : transports_that_foretell()) {
    if (name == "zmq" || name == kSecured) {
      continue;  // there a sender that leaves waits until its frame is taken
    }
    after_three_rounds(
        name,
        [](auto transport, Store& store) {
          swap_frames(*transport, chain(2), 0, {.round = 3}, kBytes);
          transport.reset();
          REQUIRE(store.set("left", {}).ok());
        },
        [](auto transport, Store& store) {
          REQUIRE(store.get("left", generous()).ok());
          swap_frames(*transport, chain(2), 1, {.round = 3}, kBytes);
          const Swap next(chain(2), 1, {.round = 4}, kBytes);
          if (transport->post(next.exchange).ok()) {
            const auto event = transport->poll(generous());
            REQUIRE_MESSAGE(event.ok(), event.status().message());
            CHECK(event->kind == TransportEvent::Kind::peer_lost);
            CHECK(event->needed);
          }
          transport.reset();
        });
  }
}

TEST_CASE("words to one who leaves do not cost the last of its frames") {
  // A connection that is closed with unread words in it drops what its other end has not read.
  constexpr std::size_t kLong = std::size_t{1} << 20U;
  for (const auto& name : transports_that_foretell()) {
    CAPTURE(name);
    const Graph graph = chain(2);
    for (int repeat = 0; repeat < 10; ++repeat) {
      const auto store = make_memory_store();
      spawn(2, [&](Rank rank) {
        const auto transport = connect(name, options_for(graph, rank, store, kLong));
        for (Round round = 0; round < 5; ++round) {
          swap_frames(*transport, graph, rank, {.round = round}, kLong);
        }
      });
    }
  }
}

TEST_CASE("rounds that are left out, and return, find their frames") {
  for (const auto& name : transports_that_foretell()) {
    CAPTURE(name);
    const Graph graph = ring(3);
    const auto store = make_memory_store();
    spawn(3, [&](Rank rank) {
      const auto transport = connect(name, options_for(graph, rank, store, kBytes));
      for (const Round round : {0U, 1U, 2U, 5U, 6U, 7U, 8U, 10U, 12U, 14U, 16U, 18U, 19U, 20U}) {
        swap_frames(*transport, graph, rank, {.round = round}, kBytes);
      }
    });
  }
}

TEST_CASE("buckets that nodes post in different orders find their frames, round after round") {
  for (const auto& name : transports_that_foretell()) {
    CAPTURE(name);
    const Graph graph = ring(2);
    const auto store = make_memory_store();
    constexpr std::uint32_t kBuckets = 5;
    spawn(2, [&](Rank rank) {
      auto options = options_for(graph, rank, store, kBytes);
      options.frames_ahead = 2 * kBuckets;
      std::map<ExchangeTag, Swap> swaps;
      const auto transport = connect(name, options);
      for (Round round = 0; round < 12; ++round) {
        const auto turn = static_cast<std::uint32_t>(round) * (rank == 0 ? 1 : 2);
        for (std::uint32_t i = 0; i < kBuckets; ++i) {
          const ExchangeTag tag{.round = round, .bucket = (i + turn) % kBuckets};
          const auto& swap = swaps.try_emplace(tag, graph, rank, tag, kBytes).first->second;
          REQUIRE(transport->post(swap.exchange).ok());
        }
        for (std::set<ExchangeTag> done; done.size() < kBuckets;) {
          const auto event = transport->poll(generous());
          REQUIRE_MESSAGE(event.ok(), event.status().message());
          REQUIRE_MESSAGE(event->kind != TransportEvent::Kind::peer_lost, event->reason);
          if (event->kind == TransportEvent::Kind::exchange_done) {
            CHECK(done.insert(event->tag).second);
          } else {
            swaps.at(event->tag).check_frame(*event, kBytes);
          }
        }
      }
    });
  }
}

TEST_CASE("over Gloo a foretold frame that is longer than its receive costs its sender") {
  if (!transport_info("gloo").available) {
    MESSAGE("SKIPPED: built without Gloo");
    return;
  }
  after_three_rounds(
      "gloo",
      [](auto transport, Store& store) {
        swap_frames(*transport, chain(2), 0, {.round = 3}, kBytes);
        REQUIRE(store.get("seen", generous()).ok());
      },
      [](auto transport, Store& store) {
        Swap shorter(chain(2), 1, {.round = 3}, kBytes - 1);
        REQUIRE(transport->post(shorter.exchange).ok());
        const auto event = transport->poll(generous());
        REQUIRE_MESSAGE(event.ok(), event.status().message());
        CHECK(event->kind == TransportEvent::Kind::peer_lost);
        CHECK_MESSAGE(event->reason.find("longer than") != std::string::npos, event->reason);
        REQUIRE(store.set("seen", {}).ok());
        transport.reset();
      });
}

}  // namespace sotto::test::foretold_test
