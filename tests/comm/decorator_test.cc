// Transports made slow or faulty on purpose.
#include <algorithm>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/comm/stores.h>
#include "decorators/faulty_transport.h"
#include "decorators/shaped_transport.h"

#include "nodes.h"

namespace sotto::test::decorator_test {

using std::chrono::milliseconds;

namespace {

using Decorate = std::function<std::unique_ptr<Transport>(Rank, std::unique_ptr<Transport>)>;

/// As run_nodes over inproc, each transport decorated.
void run_decorated(const Graph& graph, std::size_t max_payload_bytes, const Decorate& decorate,
                   const std::function<void(Rank, Transport&)>& node) {
  const auto store = make_memory_store();
  spawn(graph.nodes(), [&](Rank rank) {
    const auto transport =
        decorate(rank, connect("inproc", options_for(graph, rank, store, max_payload_bytes)));
    node(rank, *transport);
  });
}

/// What became of the frames that rank 0 sent to rank 1 in each round: 'o' whole, 'x' damaged,
/// '.' never came.
std::string fates(const FrameFaults& plan, Round rounds) {
  const Graph graph = chain(2);
  std::string seen;
  const auto store = make_memory_store();
  spawn(2, [&](Rank rank) {
    std::vector<Swap> swaps;
    for (Round round = 0; round < rounds; ++round) {
      swaps.emplace_back(graph, rank, ExchangeTag{.round = round}, 100);
    }
    auto inner = connect("inproc", options_for(graph, rank, store, 100));
    if (rank == 0) {
      const auto transport = make_faulty_transport(std::move(inner), 0, plan);
      for (const Swap& swap : swaps) {
        REQUIRE(transport->post(swap.exchange).ok());
        const auto done = transport->poll(generous());
        REQUIRE(done.ok());
        REQUIRE(done->kind == TransportEvent::Kind::exchange_done);
      }
      return;
    }
    for (const Swap& swap : swaps) {
      REQUIRE(inner->post(swap.exchange).ok());
    }
    seen.assign(rounds, '.');
    for (;;) {
      const auto event = inner->poll(generous());
      REQUIRE(event.ok());
      if (event->kind == TransportEvent::Kind::frame) {
        const auto& room = swaps[event->tag.round].rooms.front();
        seen[event->tag.round] = parse_frame(std::span(room).first(event->bytes)).ok() ? 'o' : 'x';
      }
      if (event->kind == TransportEvent::Kind::peer_lost ||
          std::find(seen.begin(), seen.end(), '.') == seen.end()) {
        return;  // rank 0 has sent all that it sends
      }
    }
  });
  return seen;
}

}  // namespace

TEST_CASE("a shaped link takes its latency and its bandwidth, and delivers the same frames") {
  const Graph graph = ring(3);
  NetworkShape shape;
  shape.edge.latency = milliseconds(5);
  shape.edge.bytes_per_second = 2e6;
  run_decorated(
      graph, 10'000,
      [&](Rank, std::unique_ptr<Transport> inner) {
        return make_shaped_transport(std::move(inner), shape);
      },
      [&](Rank rank, Transport& transport) {
        const auto start = Deadline::Clock::now();
        for (Round round = 0; round < 3; ++round) {
          swap_frames(transport, graph, rank, {.round = round}, 10'000);
        }
        // Never faster than the model; how much slower depends on the machine.
        CHECK(Deadline::Clock::now() - start >= 3 * (milliseconds(5) + milliseconds(5)));
      });
}

TEST_CASE("all edges of a node share its uplink") {
  const Graph graph = complete(4);
  NetworkShape shape;
  shape.uplink_bytes_per_second = 1e6;
  run_decorated(
      graph, 10'000,
      [&](Rank, std::unique_ptr<Transport> inner) {
        return make_shaped_transport(std::move(inner), shape);
      },
      [&](Rank rank, Transport& transport) {
        const auto start = Deadline::Clock::now();
        swap_frames(transport, graph, rank, {.round = 0}, 10'000);
        CHECK(Deadline::Clock::now() - start >= 3 * milliseconds(10));
      });
}

TEST_CASE("an edge may have a shape of its own, and a deadline says what is held back") {
  const Graph graph = complete(3);
  NetworkShape shape;
  shape.edge_to[2].latency = std::chrono::hours(1);
  const auto store = make_memory_store();
  spawn(3, [&](Rank rank) {
    const Swap swap(graph, rank, {.round = 0}, 10);
    const auto transport = make_shaped_transport(
        connect("inproc", options_for(graph, rank, store, 10)), rank == 0 ? shape : NetworkShape{});
    CHECK(transport->name() == "shaped inproc");
    REQUIRE(transport->post(swap.exchange).ok());
    const auto expected = rank == 1 ? 3U : (rank == 0 ? 2U : 1U);  // frames and exchange_done
    for (unsigned i = 0; i < expected; ++i) {
      const auto event = transport->poll(generous());
      REQUIRE_MESSAGE(event.ok(), event.status().message());
    }
    if (rank == 0) {
      const auto late = transport->poll(Deadline::after(milliseconds(10)));
      REQUIRE(late.status().fault() == Fault::deadline);
      CHECK_MESSAGE(late.status().message().find("1 frames still held back") != std::string::npos,
                    late.status().message());
    }
    REQUIRE(store->set("done/" + std::to_string(rank), {}).ok());
    for (Rank other = 0; other < 3; ++other) {
      REQUIRE(store->get("done/" + std::to_string(other), generous()).ok());
    }
  });
}

TEST_CASE("shapes that no network has are refused") {
  const auto shaped = [](const NetworkShape& shape) {
    return make_shaped_transport(connect("inproc", options_for(ring(1), 0, make_memory_store(), 0)),
                                 shape);
  };
  NetworkShape shape;
  shape.uplink_bytes_per_second = -1;
  CHECK_THROWS_AS((void)shaped(shape), Error);
  shape = {};
  shape.edge.bytes_per_second = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS((void)shaped(shape), Error);
  shape = {};
  shape.edge_to[3].latency = milliseconds(-1);
  CHECK_THROWS_AS((void)shaped(shape), Error);
}

TEST_CASE("faults strike as often as planned, at the same places for the same seed") {
  constexpr Round kRounds = 400;
  FrameFaults plan{
      .seed = 7, .drop = 0.3, .damage = 0.3, .delay = 0.1, .delay_max = milliseconds(1)};
  const auto seen = fates(plan, kRounds);
  CAPTURE(seen);
  CHECK(fates(plan, kRounds) == seen);
  const auto share = [&](char fate) {
    return static_cast<double>(std::count(seen.begin(), seen.end(), fate)) / double{kRounds};
  };
  // Five standard deviations of a binomial with 400 draws are at most 0.125.
  CHECK(std::abs(share('.') - 0.3) < 0.125);
  CHECK(std::abs(share('x') - 0.7 * 0.3) < 0.125);
  // More damage elsewhere leaves the losses where they were.
  plan.damage = 0;
  auto undamaged = fates(plan, kRounds);
  auto expected = seen;
  std::replace(expected.begin(), expected.end(), 'x', 'o');
  CHECK(undamaged == expected);
  plan.seed = 8;
  CHECK(fates(plan, kRounds) != expected);
}

TEST_CASE("a node that dies by plan is gone for itself and for others") {
  const Graph graph = ring(2);
  const auto store = make_memory_store();
  spawn(2, [&](Rank rank) {
    const Swap swap(graph, rank, {.round = 3}, 10);
    FrameFaults plan;
    if (rank == 1) {
      plan.die_at = 3;
    }
    const auto transport =
        make_faulty_transport(connect("inproc", options_for(graph, rank, store, 10)), rank, plan);
    for (Round round = 0; round < 3; ++round) {
      swap_frames(*transport, graph, rank, {.round = round}, 10);
    }
    const Status posted = transport->post(swap.exchange);
    if (rank == 1) {
      CHECK(posted.fault() == Fault::io);
      CHECK(transport->poll(generous()).status().fault() == Fault::io);
      return;
    }
    const auto event = transport->poll(generous());
    REQUIRE(event.ok());
    CHECK(event->kind == TransportEvent::Kind::peer_lost);
    CHECK(event->peer == 1);
  });
}

TEST_CASE("plans that make no sense are refused") {
  const auto faulty = [](const FrameFaults& plan) {
    return make_faulty_transport(connect("inproc", options_for(ring(1), 0, make_memory_store(), 0)),
                                 0, plan);
  };
  CHECK_THROWS_AS((void)faulty({.drop = 1.1}), Error);
  CHECK_THROWS_AS((void)faulty({.damage = -0.1}), Error);
  CHECK_THROWS_AS((void)faulty({.delay = std::numeric_limits<double>::quiet_NaN()}), Error);
  CHECK_THROWS_AS((void)faulty({.delay_max = milliseconds(-1)}), Error);
}

}  // namespace sotto::test::decorator_test
