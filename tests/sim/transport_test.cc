// What the transport and the codec add to the network, to the nanosecond.
#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/sim/network/network.h>

#include "sim/asymmetric.h"

namespace sotto::test::transport_test {

namespace {

constexpr SimTime kMs = 1'000'000;

SimulatorOptions one_round() {
  SimulatorOptions options;
  options.rounds = 1;
  return options;
}

/// Two frames of this length are what a peer may be ahead (Peers::frames_ahead).
constexpr std::size_t kTwoInWindow = std::size_t{12} << 20U;

std::shared_ptr<const Topology> cycle_of(int nodes) {
  std::vector<std::pair<Rank, Rank>> cycle;
  for (Rank rank = 0; rank < nodes; ++rank) {
    cycle.emplace_back(rank, (rank + 1) % nodes);
  }
  return graph_of(nodes, cycle);
}

std::shared_ptr<const Topology> pair() { return graph_of(2, {{0, 1}, {1, 0}}); }

}  // namespace

TEST_CASE("over Gloo a frame leaves when the notice of its receive has come, by the way back") {
  const Platform platform = platform_of(2, {{0, 1, 10 * kMs}, {1, 0, 100 * kMs}});
  auto options = one_round();
  const auto zmq = play(pair(), platform, options);
  CHECK(zmq.nodes[0].end == 100 * kMs);
  CHECK(zmq.nodes[1].end == 10 * kMs);
  options.transport = TransportModel::gloo();
  const auto gloo = play(pair(), platform, options);
  CHECK(gloo.nodes[0].end == 110 * kMs);
  CHECK(gloo.nodes[1].end == 110 * kMs);
}

TEST_CASE("over Gloo notices of like rounds are a round ahead of their receives") {
  const Platform platform = platform_of(2, {{0, 1, 10 * kMs}, {1, 0, 10 * kMs}});
  SimulatorOptions options;
  options.rounds = 10;
  CHECK(play(pair(), platform, options).end == 100 * kMs);
  options.transport = TransportModel::gloo();
  // Two latencies each until the third round is posted, and foretells the fourth.
  CHECK(play(pair(), platform, options).end == 3 * 20 * kMs + 7 * 10 * kMs);
}

TEST_CASE("over Gloo the notice of a receive lets no other frame go") {
  // Ten nodes: 18 phases a round and 16 rooms, each for the next phase as soon as it is free.
  const int nodes = 10;
  const Platform platform = make_star(nodes, kUnlimited, 10 * kMs);
  SimulatorOptions options;
  options.rounds = 4;
  const auto end = [&](const TransportModel& transport) {
    options.transport = transport;
    const StandInShape shape = {.timing = StandInShape::Timing::blocking,
                                .pattern = ExchangePattern::ring,
                                .rings = {{.frame_bytes = 1000, .elements = 250}}};
    return Simulator(platform, options, make_stand_ins(shape, cycle_of(nodes))).run().end;
  };
  CHECK(end(TransportModel::zmq()) == 4 * 18 * 10 * kMs);
  CHECK(end(TransportModel::gloo()) == (3 * 18 * 20 + 18 * 10) * kMs);
}

TEST_CASE("a frame that fits the buffer is handed over at once, a larger one when it is there") {
  const Platform platform = platform_of(2, {{0, 1, 100 * kMs}, {1, 0, kMs}});
  auto options = one_round();
  options.transport.send_buffer_bytes = 1000;
  CHECK(play(pair(), platform, options).nodes[0].end == kMs);
  options.transport.send_buffer_bytes = 999;
  CHECK(play(pair(), platform, options).nodes[0].end == 100 * kMs);
}

TEST_CASE("a sender is as far ahead of a receiver that is slow as its window lets it be") {
  // Round a cycle of eight, node 0 can be seven rounds ahead of node 1.
  SimulatorOptions options;
  options.rounds = 20;
  options.nodes.assign(8, {});
  options.nodes[1].compute.seconds = 1;
  const Platform star = make_star(8, kUnlimited, 0);
  const auto free = play(cycle_of(8), star, options);
  CHECK(free.largest_lead == 7);
  CHECK(free.end == 20'000 * kMs);
  // Two frames wait, and the one of the third round stays with its sender.
  const auto held = play(cycle_of(8), star, options, kTwoInWindow);
  CHECK(held.largest_lead == 2);
  CHECK(held.end == 20'000 * kMs);
}

TEST_CASE("a link carries a window in a round trip, and no more") {
  // One of eight ways takes 100 ms, there and back; the others 1 ms. Once frames are under way a
  // cycle of 107 ms carries eight rounds, but a window of two frames holds it to two in 200 ms.
  std::vector<OneWay> ways;
  for (Rank rank = 0; rank < 8; ++rank) {
    const Rank next = (rank + 1) % 8;
    const SimTime latency = rank == 0 ? 100 * kMs : kMs;
    ways.push_back({rank, next, latency});
    ways.push_back({next, rank, latency});
  }
  const Platform platform = platform_of(8, ways);
  const auto end = [&](Round rounds, std::size_t frame_bytes) {
    SimulatorOptions options;
    options.rounds = rounds;
    return play(cycle_of(8), platform, options, frame_bytes).end;
  };
  CHECK(end(48, 1000) - end(24, 1000) == 3 * 107 * kMs);
  CHECK(end(48, kTwoInWindow) - end(24, kTwoInWindow) == 24 * 100 * kMs);
}

TEST_CASE("an exchange costs what it costs once, and a frame for several peers one encoding") {
  const auto everyone = graph_of(4, {{0, 1},
                                     {0, 2},
                                     {0, 3},
                                     {1, 0},
                                     {1, 2},
                                     {1, 3},
                                     {2, 0},
                                     {2, 1},
                                     {2, 3},
                                     {3, 0},
                                     {3, 1},
                                     {3, 2}});
  const Platform platform = make_star(4, kUnlimited, 10 * kMs);
  const auto end_with = [&](const CodecCost& cost) {
    auto options = one_round();
    options.nodes[0].codec = cost;
    return play(everyone, platform, options).end;
  };
  CHECK(end_with({}) == 10 * kMs);
  CHECK(end_with({.seconds_per_exchange = 0.05}) == 60 * kMs);
  CHECK(end_with({.encode_s_per_byte = 1e-5}) == 20 * kMs);
  CHECK(end_with({.decode_s_per_byte = 1e-6}) == 13 * kMs);
  CHECK(end_with({.decode_s_per_byte = 1e-6, .first_phase_decodings = 2}) == 16 * kMs);
  // A frame of what wraps the algorithm is decoded once.
  CHECK(end_with({.decode_s_per_byte = 1e-6, .first_phase_decodings = 2, .first_bucket = 1}) ==
        13 * kMs);
  CHECK_THROWS_WITH(end_with({.first_phase_decodings = 0}),
                    doctest::Contains("first_phase_decodings"));
}

TEST_CASE("jitter changes when messages of a connection arrive, and not their order") {
  Platform platform(2);
  platform.set_route(0, 1, {platform.add_link({.latency = 10 * kMs, .jitter = 4 * kMs})});
  const auto arrivals = [&](bool at_once) {
    EventQueue queue;
    Network network(platform, {}, 1, queue);
    const ConnectionId connection = network.connect(platform, 0, 1);
    std::vector<SimTime> took;
    SimTime sent = 0;
    for (int i = 0; at_once && i < 100; ++i) {
      network.send(connection, 1000);
    }
    for (int i = 0; i < 100; ++i) {
      if (!at_once) {
        sent = queue.now();
        network.send(connection, 1000);
      }
      REQUIRE(network.step());
      took.push_back(queue.now() - sent);
    }
    return took;
  };
  // Each draws its latency, and waits for those before it.
  auto expected = arrivals(false);
  REQUIRE_FALSE(std::is_sorted(expected.begin(), expected.end()));
  for (std::size_t i = 1; i < expected.size(); ++i) {
    expected[i] = std::max(expected[i], expected[i - 1]);
  }
  CHECK(arrivals(true) == expected);
}

}  // namespace sotto::test::transport_test
