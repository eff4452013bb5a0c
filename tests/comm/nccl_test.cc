// The transport nccl over a library and a device that are none (fake_nccl.h, fake_device.h): what
// conformance_test.cc does not ask of every transport. With GPUs: nccl_device_test.cc.
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/comm/stores.h>
#include "decorators/faulty_transport.h"

#include "nccl_nodes.h"

namespace sotto::test::nccl_test {

using std::chrono::milliseconds;

namespace {

constexpr std::size_t kMost = 50'000;

/// Every second node talks to the next in one round, to the one before in the other.
std::optional<Rank> partner_of(Rank rank, Round round, int nodes) {
  const Rank step = (static_cast<Round>(rank) + round) % 2 == 0 ? 1 : -1;
  return (rank + step + nodes) % nodes;
}

}  // namespace

TEST_CASE("nccl: a graph that changes with every round, frames of all sizes up to the longest") {
  const Graph graph = ring(6);
  run_nodes(kFakeNccl, graph, kMost, [&](Rank rank, Transport& transport) {
    for (Round round = 0; round < 60; ++round) {
      const std::size_t payload = round % 10 == 9 ? kMost : (round * 977) % (kMost + 1);
      Swap swap(graph, rank, {.round = round}, payload, kMost);
      const Rank partner = *partner_of(rank, round, 6);
      std::erase_if(swap.exchange.sends, [&](const Send& send) { return send.to != partner; });
      std::erase_if(swap.exchange.receives,
                    [&](const Receive& receive) { return receive.from != partner; });
      REQUIRE(transport.post(swap.exchange).ok());
      const auto frame = next_event(transport);
      REQUIRE(frame.kind == TransportEvent::Kind::frame);
      swap.check_frame(frame, payload);
      REQUIRE(next_event(transport).kind == TransportEvent::Kind::exchange_done);
    }
  });
}

TEST_CASE("nccl: ranks that differ in their longest frame agree on the longer one") {
  const Graph graph = ring(3);
  const auto store = make_memory_store();
  spawn(3, [&](Rank rank) {
    const auto transport =
        connect(kFakeNccl, options_for(graph, rank, store, rank == 1 ? kMost : std::size_t{2000}));
    swap_frames(*transport, graph, rank, {.round = 0}, 2000);
  });
}

TEST_CASE("nccl: a frame longer than the longest is refused before it is sent") {
  const Graph graph = ring(2);
  const auto store = make_memory_store();
  // An invariant of the program's own: it ends, here a process that is forked for it.
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    (void)std::freopen("/dev/null", "w", stderr);
    (void)::signal(SIGABRT, SIG_DFL);  // not the test program's
    std::thread other([&] { (void)open_transport(kFakeNccl, options_for(graph, 1, store, 100)); });
    auto transport = open_transport(kFakeNccl, options_for(graph, 0, store, 100));
    const Swap swap(graph, 0, {.round = 0}, 101);
    (void)(*transport)->post(swap.exchange);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
}

TEST_CASE("nccl: a library that fails in the middle of a group loses all, and all are told") {
  const Graph graph = ring(4);
  const auto store = make_memory_store();
  spawn(4, [&](Rank rank) {
    const Swap swap(graph, rank, {.round = 1}, kMost);
    const Swap again(graph, rank, {.round = 2}, kMost);
    NcclNode node(options_for(graph, rank, store, kMost), fake_world());
    swap_frames(*node.transport, graph, rank, {.round = 0}, kMost);
    if (rank == 2) {
      node.library->fail();  // and the others wait for it in vain
    }
    const Status posted = node.transport->post(swap.exchange);
    if (!posted.ok() || rank == 0) {
      // Not a neighbour of it: its exchange may be done before it hears.
      CHECK((posted.ok() || posted.fault() == Fault::peer_lost));
      for (bool lost = !posted.ok(); !lost;) {
        const auto event = next_event(*node.transport);
        lost = event.kind == TransportEvent::Kind::peer_lost;
        if (event.kind == TransportEvent::Kind::exchange_done) {
          (void)node.transport->post(again.exchange);
        }
      }
      return;
    }
    const auto told = losses(*node.transport);
    REQUIRE_FALSE(told.empty());
    CHECK(told.front().needed);
    if (rank == 2) {
      CHECK(told.front().reason.find("remote process exited") != std::string::npos);
      CHECK(told.size() == 2);
    } else {
      CHECK(told.front().peer == 2);
      CHECK_MESSAGE(told.front().reason.find("its device or its NCCL failed") != std::string::npos,
                    told.front().reason);
    }
  });
}

TEST_CASE("nccl: what was done when a neighbour gave up is still delivered, and then it is lost") {
  // Rank 0 gives up in round 1, with rank 2 alone, while to rank 1 round 0, which is done, still
  // looks as if it were under way.
  const Graph graph = ring(3);
  const auto store = make_memory_store();
  std::array<std::shared_ptr<FakeDevice>, 3> devices;
  spawn(3, [&](Rank rank) {
    const Swap first(graph, rank, {.round = 0}, 100);
    Swap second(graph, rank, {.round = 1}, 100);
    NcclNode node(options_for(graph, rank, store, 100), fake_world());
    if (rank == 1) {
      devices[1] = node.device;
      node.device->hold_events();
      REQUIRE(store->set("held", {}).ok());
      swap_frames(*node.transport, graph, rank, {.round = 0}, 100);
      const auto told = losses(*node.transport);
      REQUIRE_FALSE(told.empty());
      return;
    }
    REQUIRE(store->get("held", generous()).ok());
    swap_frames(*node.transport, graph, rank, {.round = 0}, 100);
    if (rank == 2) {
      // Announced to rank 0, and never begun: rank 1 announces nothing.
      REQUIRE(node.transport->post(second.exchange).ok());
      REQUIRE_FALSE(losses(*node.transport).empty());
      return;
    }
    leave_out(1, second.exchange);
    REQUIRE(node.transport->post(second.exchange).ok());
    REQUIRE(begins_groups(node, 2));
    node.library->fail();
    REQUIRE_FALSE(losses(*node.transport).empty());
    devices[1]->release_events(20);
  });
}

TEST_CASE("nccl: a device that refuses its work costs its own node, which says so") {
  const Graph graph = ring(2);
  const auto store = make_memory_store();
  bool lookups = false;
  SUBCASE("a copy") {}
  SUBCASE("to tell where memory lies, which the host might touch otherwise") { lookups = true; }
  spawn(2, [&](Rank rank) {
    Swap swap(graph, rank, {.round = 0}, 1000);
    NcclNode node(options_for(graph, rank, store, 1000), fake_world());
    std::optional<OnDevice> frame;
    if (rank == 0 && lookups) {
      frame.emplace(*node.device, swap.exchange.sends[0].frame);
      swap.exchange.sends[0].frame = frame->bytes();
      node.device->break_lookups();
    } else if (rank == 0) {
      node.device->break_copies();
    }
    const Status posted = node.transport->post(swap.exchange);
    if (posted.ok()) {
      const auto told = losses(*node.transport);
      REQUIRE(told.size() == 1);
      CHECK(told.front().peer == 1 - rank);
      if (rank == 0) {
        CHECK(told.front().reason.find("the device is lost") != std::string::npos);
      }
    }
  });
}

TEST_CASE("nccl: who leaves in good order destroys its communicator, others abort theirs") {
  const Graph graph = ring(2);
  const auto store = make_memory_store();
  spawn(2, [&](Rank rank) {
    auto options = options_for(graph, rank, store, kMost);
    options.close_timeout = milliseconds(60'000);
    NcclNode node(options, fake_world());
    swap_frames(*node.transport, graph, rank, {.round = 0}, kMost);
    if (rank == 0) {
      node.library->fail();  // which shows in its flush
    }
    node.transport.reset();
    CHECK(node.library->destroyed() == rank);
  });
}

TEST_CASE("nccl: an error over a network is laid to the one who died") {
  const auto world = std::make_shared<World>();
  world->tell_errors();
  const Graph graph = ring(3);
  const auto store = make_memory_store();
  spawn(3, [&](Rank rank) {
    const Swap swap(graph, rank, {.round = 0}, kMost);
    auto options = options_for(graph, rank, store, kMost);
    options.close_timeout = milliseconds(0);
    NcclNode node(options, world);
    if (rank == 2) {
      return;
    }
    const Status posted = node.transport->post(swap.exchange);
    if (posted.ok()) {
      const auto told = losses(*node.transport);
      REQUIRE_FALSE(told.empty());
      const bool named = told.front().peer == 2 ||
                         told.front().reason.find("node 2 was lost") != std::string::npos;
      CHECK_MESSAGE(named, told.front().peer, ": ", told.front().reason);
    }
    // A node that leaves first would be blamed as well.
    REQUIRE(store->set(fmt::format("told/{}", rank), {}).ok());
    REQUIRE(store->get(fmt::format("told/{}", 1 - rank), generous()).ok());
  });
}

TEST_CASE("nccl: a transport with operations under way goes in its time, and frees its device") {
  const Graph graph = ring(3);
  const auto store = make_memory_store();
  spawn(3, [&](Rank rank) {
    const Swap first(graph, rank, {.round = 0}, kMost);
    const Swap second(graph, rank, {.round = 1}, kMost);
    const Swap third(graph, rank, {.round = 2}, kMost);
    auto options = options_for(graph, rank, store, kMost);
    options.close_timeout = milliseconds(rank == 2 ? 60'000 : 20);
    NcclNode node(options, fake_world());
    if (rank == 2) {
      // Silent until the others are gone; then nothing keeps it.
      REQUIRE(store->get("gone/0", generous()).ok());
      REQUIRE(store->get("gone/1", generous()).ok());
      return;
    }
    for (const Swap* swap : {&first, &second, &third}) {
      REQUIRE(node.transport->post(swap->exchange).ok());
    }
    node.transport.reset();
    REQUIRE(store->set(fmt::format("gone/{}", rank), {}).ok());
  });
}

TEST_CASE("nccl: a transport whose group never ends goes in its time, and frees its device") {
  const Graph graph = ring(3);
  const auto store = make_memory_store();
  spawn(3, [&](Rank rank) {
    const Swap swap(graph, rank, {.round = 0}, kMost);
    auto options = options_for(graph, rank, store, kMost);
    options.close_timeout = milliseconds(20);
    NcclNode node(options, fake_world());
    if (rank == 2) {
      node.library->stall();  // its group is announced, and never put on the stream
    }
    REQUIRE(node.transport->post(swap.exchange).ok());
    REQUIRE(begins_groups(node, 1));
    REQUIRE(store->set(fmt::format("begun/{}", rank), {}).ok());
    for (Rank peer = 0; peer < 3; ++peer) {
      REQUIRE(store->get(fmt::format("begun/{}", peer), generous()).ok());
    }
  });
}

TEST_CASE("nccl: a node that goes before it posts costs nobody but itself") {
  // No group had begun that waits for it, so none has to be aborted.
  const Graph graph = complete(3);
  const auto store = make_memory_store();
  spawn(3, [&](Rank rank) {
    const Swap swap(graph, rank, {.round = 0}, kMost);
    auto options = options_for(graph, rank, store, kMost);
    options.close_timeout = milliseconds(rank == 2 ? 0 : 60'000);
    NcclNode node(options, fake_world());
    if (rank == 2) {
      REQUIRE(store->get("posted/0", generous()).ok());
      REQUIRE(store->get("posted/1", generous()).ok());
      return;
    }
    REQUIRE(node.transport->post(swap.exchange).ok());
    REQUIRE(store->set(fmt::format("posted/{}", rank), {}).ok());
    std::set<Rank> frames;
    std::set<Rank> lost;
    while (frames.size() + lost.size() < 2) {
      const auto event = next_event(*node.transport);
      if (event.kind == TransportEvent::Kind::frame) {
        swap.check_frame(event, kMost);
        frames.insert(event.peer);
      } else if (event.kind == TransportEvent::Kind::peer_lost) {
        CHECK(event.needed);
        lost.insert(event.peer);
      }
    }
    CHECK(frames == std::set<Rank>{1 - rank});
    CHECK(lost == std::set<Rank>{2});
    // The two go on with each other.
    Swap next(graph, rank, {.round = 1}, 10);
    leave_out(2, next.exchange);
    REQUIRE(node.transport->post(next.exchange).ok());
    for (auto event = next_event(*node.transport);
         event.kind != TransportEvent::Kind::exchange_done || event.tag.round != 1;
         event = next_event(*node.transport)) {
      CHECK(event.kind != TransportEvent::Kind::peer_lost);
    }
  });
}

TEST_CASE("nccl: what moves is as long as the frames, however long the longest is") {
  const Graph graph = ring(3);
  const auto store = make_memory_store();
  spawn(3, [&](Rank rank) {
    NcclNode node(options_for(graph, rank, store, kMost), fake_world());
    std::size_t due = 0;
    for (Round round = 0; round < 12; ++round) {
      const std::size_t payload = round % 4 == 3 ? kMost : 100 * (round + 1);
      swap_frames(*node.transport, graph, rank, {.round = round}, payload);
      due += 2 * (kFrameHeaderBytes + payload);
    }
    CHECK(node.library->bytes_sent() == due);
  });
}

TEST_CASE("nccl: what was posted before a node leaves still goes out, though nobody polls") {
  const Graph graph = chain(2);
  const auto store = make_memory_store();
  spawn(2, [&](Rank rank) {
    std::vector<Swap> swaps;
    swaps.reserve(5);
    for (Round round = 0; round < 5; ++round) {
      swaps.emplace_back(graph, rank, ExchangeTag{.round = round}, kMost);
    }
    auto transport = connect(kFakeNccl, options_for(graph, rank, store, kMost));
    for (const Swap& swap : swaps) {
      REQUIRE(transport->post(swap.exchange).ok());
    }
    for (int frames = 0; rank == 1 && frames < 5;) {
      const auto event = next_event(*transport);
      REQUIRE(event.kind != TransportEvent::Kind::peer_lost);
      if (event.kind == TransportEvent::Kind::frame) {
        swaps[event.tag.round].check_frame(event, kMost);
        ++frames;
      }
    }
  });
}

TEST_CASE("nccl: frames and rooms on the device are used where they lie") {
  const Graph graph = ring(3);
  const auto store = make_memory_store();
  spawn(3, [&](Rank rank) {
    NcclNode node(options_for(graph, rank, store, 3000), fake_world());
    for (Round round = 0; round < 6; ++round) {
      // As long as the longest, and shorter ones in rooms of several lengths.
      const std::size_t payload = round % 3 == 0 ? 3000 : 100 * round;
      const std::size_t room = round % 2 == 0 ? 3000 : payload;
      Swap swap(graph, rank, {.round = round}, payload, room);
      std::vector<OnDevice> memory;
      memory.reserve(4);
      for (Send& send : swap.exchange.sends) {
        send.frame = memory.emplace_back(*node.device, send.frame).bytes();
      }
      for (Receive& receive : swap.exchange.receives) {
        receive.buffer = memory.emplace_back(*node.device, receive.buffer.size()).bytes();
      }
      REQUIRE(node.transport->post(swap.exchange).ok());
      for (auto event = next_event(*node.transport);
           event.kind != TransportEvent::Kind::exchange_done; event = next_event(*node.transport)) {
        REQUIRE(event.kind == TransportEvent::Kind::frame);
        const auto& receives = swap.exchange.receives;
        const auto which = std::find_if(receives.begin(), receives.end(),
                                        [&](const Receive& one) { return one.from == event.peer; });
        const auto place =
            swap.exchange.sends.size() + static_cast<std::size_t>(which - receives.begin());
        CHECK(memory[place].copy(event.bytes) ==
              make_frame(event.peer, rank, {.round = round}, payload));
      }
    }
  });
}

TEST_CASE("nccl: decorators that hold single frames back are refused") {
  const auto options = options_for(ring(1), 0, make_memory_store(), 0);
  CHECK_THROWS_AS((void)make_faulty_transport(connect(kFakeNccl, options), 0, FrameFaults{}),
                  Error);
}

}  // namespace sotto::test::nccl_test
