// What every transport must do, run for each that this build has.
#include <set>
#include <thread>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "nodes.h"

namespace sotto::test::conformance_test {

TEST_CASE("frames of all sizes arrive as they were sent, on rings of all sizes") {
  for (const auto& name : conforming_transports()) {
    for (const int nodes : {1, 2, 3, 5, 8}) {
      CAPTURE(name);
      CAPTURE(nodes);
      const Graph graph = ring(nodes);
      run_nodes(name, graph, 1U << 20, [&](Rank rank, Transport& transport) {
        Round round = 0;
        for (const std::size_t size : {0U, 1U, 63U, 1000U, 65536U, 1U << 20}) {
          swap_frames(transport, graph, rank, {.round = round++}, size);
        }
      });
    }
  }
}

TEST_CASE("32 ranks on a ring come up and exchange") {
  for (const auto& name : conforming_transports()) {
    CAPTURE(name);
    const Graph graph = ring(32);
    run_nodes(name, graph, 1000, [&](Rank rank, Transport& transport) {
      for (Round round = 0; round < 5; ++round) {
        swap_frames(transport, graph, rank, {.round = round}, 1000);
      }
    });
  }
}

TEST_CASE("a complete graph exchanges in several phases and buckets") {
  for (const auto& name : conforming_transports()) {
    CAPTURE(name);
    const Graph graph = complete(5);
    run_nodes(name, graph, 5000, [&](Rank rank, Transport& transport) {
      for (Round round = 7; round < 12; ++round) {
        for (std::uint16_t phase = 0; phase < 2; ++phase) {
          for (const std::uint32_t bucket : {1U, 0U}) {
            swap_frames(transport, graph, rank, {round, phase, bucket}, 1000 * phase + bucket);
          }
        }
      }
    });
  }
}

TEST_CASE("edges may run one way: some only send, some only receive") {
  for (const auto& name : conforming_transports()) {
    for (const auto& graph : {chain(4), directed_ring(5)}) {
      CAPTURE(name);
      run_nodes(name, graph, 3000, [&](Rank rank, Transport& transport) {
        for (Round round = 0; round < 200; ++round) {
          swap_frames(transport, graph, rank, {.round = round}, 3000);
        }
      });
    }
  }
}

TEST_CASE("a frame of 64 MiB arrives") {
  for (const auto& name : conforming_transports()) {
    CAPTURE(name);
    const Graph graph = chain(2);
    run_nodes(name, graph, 64U << 20, [&](Rank rank, Transport& transport) {
      swap_frames(transport, graph, rank, {}, 64U << 20);
    });
  }
}

TEST_CASE("2000 small rounds back to back, whoever is ahead") {
  for (const auto& name : conforming_transports()) {
    CAPTURE(name);
    const Graph graph = ring(2);
    // Gloo's I/O thread spins while another thread has its connection: slow on few cores.
    const Round rounds = name == "gloo" ? 300 : 2000;
    run_nodes(name, graph, 100, [&](Rank rank, Transport& transport) {
      for (Round round = 0; round < rounds; ++round) {
        swap_frames(transport, graph, rank, {.round = round}, round % 100);
      }
    });
  }
}

TEST_CASE("a frame shorter than its room arrives with its own length") {
  for (const auto& name : conforming_transports()) {
    CAPTURE(name);
    const Graph graph = ring(3);
    run_nodes(name, graph, 10000, [&](Rank rank, Transport& transport) {
      for (Round round = 0; round < 20; ++round) {
        const std::size_t payload = 37 * round;
        const Swap swap(graph, rank, {.round = round}, payload, 10000);
        REQUIRE(transport.post(swap.exchange).ok());
        for (;;) {
          const auto event = transport.poll(generous());
          REQUIRE_MESSAGE(event.ok(), event.status().message());
          if (event->kind == TransportEvent::Kind::exchange_done) {
            break;
          }
          swap.check_frame(*event, payload);
        }
      }
    });
  }
}

TEST_CASE("several exchanges may be under way at once") {
  for (const auto& name : conforming_transports()) {
    CAPTURE(name);
    const Graph graph = ring(3);
    run_nodes(name, graph, 5000, [&](Rank rank, Transport& transport) {
      std::vector<Swap> swaps;
      for (Round round = 0; round < 6; ++round) {
        swaps.emplace_back(graph, rank, ExchangeTag{.round = round}, 5000);
      }
      for (const Swap& swap : swaps) {
        REQUIRE(transport.post(swap.exchange).ok());
      }
      std::set<Round> done;
      while (done.size() < swaps.size()) {
        const auto event = transport.poll(generous());
        REQUIRE_MESSAGE(event.ok(), event.status().message());
        REQUIRE(event->kind != TransportEvent::Kind::peer_lost);
        if (event->kind == TransportEvent::Kind::frame) {
          swaps[event->tag.round].check_frame(*event, 5000);
        } else {
          done.insert(event->tag.round);
        }
      }
    });
  }
}

TEST_CASE("a wait ends at its deadline and names whom it waited for") {
  for (const auto& name : conforming_transports()) {
    CAPTURE(name);
    const Graph graph = complete(3);
    const auto store = make_memory_store();
    std::vector<std::byte> told{std::byte{1}};
    spawn(3, [&](Rank rank) {
      const Swap swap(graph, rank, {.round = 41}, 100);
      const auto transport = connect(name, options_for(graph, rank, store, 100));
      if (rank == 0) {
        const auto idle = transport->poll(Deadline::after(std::chrono::milliseconds(1)));
        CHECK(idle.status().fault() == Fault::deadline);
      }
      if (rank == 2) {
        // Silent until the others have given up.
        CHECK(store->get("done/0", generous()).ok());
        CHECK(store->get("done/1", generous()).ok());
        return;
      }
      REQUIRE(transport->post(swap.exchange).ok());
      if (reports_singly(name)) {
        const auto first = transport->poll(generous());
        REQUIRE_MESSAGE(first.ok(), first.status().message());
        CHECK(first->peer == 1 - rank);
      }
      const auto event = transport->poll(Deadline::after(std::chrono::milliseconds(50)));
      REQUIRE(event.status().fault() == Fault::deadline);
      const auto silent = reports_singly(name) ? "from 2" : fmt::format("from {}, 2", 1 - rank);
      CHECK_MESSAGE(event.status().message().find("round 41") != std::string::npos,
                    event.status().message());
      CHECK_MESSAGE(event.status().message().find("no frame yet " + silent) != std::string::npos,
                    event.status().message());
      CHECK(store->set("done/" + std::to_string(rank), told).ok());
      // Leave only when both have seen their deadline, not a peer that went.
      CHECK(store->get("done/" + std::to_string(1 - rank), generous()).ok());
    });
  }
}

TEST_CASE("the last frames of a node that leaves still arrive") {
  for (const auto& name : conforming_transports()) {
    CAPTURE(name);
    const Graph graph = chain(2);
    const auto store = make_memory_store();
    const std::size_t size = 3U << 20;
    std::vector<std::byte> told{std::byte{1}};
    spawn(2, [&](Rank rank) {
      const auto transport = connect(name, options_for(graph, rank, store, size));
      if (rank == 1) {
        // Look only when the sender is leaving or has left.
        if (runs_ahead(name)) {
          CHECK(store->get("leaving", generous()).ok());
        }
        swap_frames(*transport, graph, rank, {.round = 0}, size);
        swap_frames(*transport, graph, rank, {.round = 1}, size);
        return;
      }
      swap_frames(*transport, graph, rank, {.round = 0}, size);
      if (runs_ahead(name)) {
        CHECK(store->set("leaving", told).ok());
      }
      swap_frames(*transport, graph, rank, {.round = 1}, size);
    });
  }
}

TEST_CASE("who leaves with all frames taken does not wait for those who stay") {
  for (const auto& name : conforming_transports()) {
    CAPTURE(name);
    const Graph graph = ring(2);
    const auto store = make_memory_store();
    spawn(2, [&](Rank rank) {
      auto options = options_for(graph, rank, store, 100);
      options.close_timeout = std::chrono::hours(1);
      auto transport = connect(name, options);
      for (Round round = 0; round < 5; ++round) {
        swap_frames(*transport, graph, rank, {.round = round}, 100);
      }
      if (rank == 0) {
        transport.reset();
        REQUIRE(store->set("left", {}).ok());
      } else {
        REQUIRE(store->get("left", generous()).ok());
      }
    });
  }
}

TEST_CASE("a peer that closed is lost when something needs it, once") {
  for (const auto& name : conforming_transports()) {
    CAPTURE(name);
    const Graph graph = ring(3);
    const auto store = make_memory_store();
    spawn(3, [&](Rank rank) {
      // Buffers of an exchange that does not complete outlive the transport.
      const Swap swap(graph, rank, {.round = 1}, 100);
      const Swap next(graph, rank, {.round = 2}, 100);
      const auto transport = connect(name, options_for(graph, rank, store, 100));
      swap_frames(*transport, graph, rank, {.round = 0}, 100);
      if (rank == 2) {
        return;
      }
      const Status posted = transport->post(swap.exchange);
      if (!posted.ok()) {
        CHECK(posted.fault() == Fault::peer_lost);
        CHECK_MESSAGE(posted.message().find("node 2") != std::string::npos, posted.message());
      }
      int losses = 0;
      bool blamed = false;
      for (;;) {
        const auto event =
            transport->poll(blamed ? Deadline::after(std::chrono::seconds(0)) : generous());
        if (!event.ok()) {
          REQUIRE(event.status().fault() == Fault::deadline);
          break;
        }
        REQUIRE(event->kind != TransportEvent::Kind::exchange_done);
        if (event->kind == TransportEvent::Kind::peer_lost) {
          CHECK_FALSE(event->reason.empty());
          // The other neighbour may leave too once it has seen this; over nccl it may have given up
          // because of it, before anything here needed rank 2.
          losses += event->peer == 2 ? 1 : 0;
          blamed = blamed || event->peer == 2 ||
                   event->reason.find("node 2 was lost") != std::string::npos;
        }
      }
      CHECK(blamed);
      CHECK(losses <= 1);
      CHECK(transport->post(next.exchange).fault() == Fault::peer_lost);
    });
  }
}

TEST_CASE("a peer that told its part and left without taking ours is lost, and needed") {
  for (const auto& name : conforming_transports()) {
    CAPTURE(name);
    const Graph graph = ring(2);
    const auto store = make_memory_store();
    spawn(2, [&](Rank rank) {
      Swap swap(graph, rank, {.round = 0}, 100);
      const Swap again(graph, rank, {.round = 1}, 100);
      auto transport = connect(name, options_for(graph, rank, store, 100));
      if (rank == 1) {
        swap.exchange.receives.clear();
        REQUIRE(transport->post(swap.exchange).ok());
        const auto done = transport->poll(generous());
        REQUIRE_MESSAGE(done.ok(), done.status().message());
        REQUIRE(done->kind == TransportEvent::Kind::exchange_done);
        transport.reset();
        REQUIRE(store->set("left", {}).ok());
        return;
      }
      if (runs_ahead(name)) {  // where a frame leaves only when its receive is posted
        REQUIRE(store->get("left", generous()).ok());
      }
      REQUIRE(transport->post(swap.exchange).ok());
      // The news of its end may overtake its frame; and ours may have gone out before that news
      // came in: what needs the peer next is then told.
      auto next = transport->poll(generous());
      REQUIRE_MESSAGE(next.ok(), next.status().message());
      while (next->kind != TransportEvent::Kind::peer_lost) {
        if (next->kind == TransportEvent::Kind::exchange_done) {
          REQUIRE(name != "inproc");
          REQUIRE(transport->post(again.exchange).ok());
        }
        next = transport->poll(generous());
        REQUIRE_MESSAGE(next.ok(), next.status().message());
      }
      CHECK(next->needed);
    });
  }
}

TEST_CASE("an interruption ends a poll, also one that comes later, and nothing else") {
  for (const auto& name : conforming_transports()) {
    CAPTURE(name);
    const Graph graph = ring(2);
    const auto store = make_memory_store();
    spawn(2, [&](Rank rank) {
      auto transport = connect(name, options_for(graph, rank, store, 100));
      transport->interrupt();
      transport->interrupt();
      const auto early = transport->poll(generous());
      REQUIRE_MESSAGE(early.ok(), early.status().message());
      CHECK(early->kind == TransportEvent::Kind::interrupted);
      // Two of them are one.
      const auto none = transport->poll(Deadline::after(std::chrono::seconds(0)));
      CHECK(none.status().fault() == Fault::deadline);

      std::thread bell([&] { transport->interrupt(); });
      const auto waiting = transport->poll(generous());
      bell.join();
      REQUIRE_MESSAGE(waiting.ok(), waiting.status().message());
      CHECK(waiting->kind == TransportEvent::Kind::interrupted);
      REQUIRE(store->set(fmt::format("rung-{}", rank), {}).ok());
      REQUIRE(store->get(fmt::format("rung-{}", 1 - rank), generous()).ok());
      swap_frames(*transport, graph, rank, {.round = 0}, 100);
    });
  }
}

TEST_CASE("a sender runs as many frames ahead as the options say, and no further") {
  for (const auto& name : conforming_transports()) {
    CAPTURE(name);
    if (!runs_ahead(name)) {
      continue;  // where a frame leaves only when its receive is posted
    }
    const Graph graph = chain(2);
    const auto store = make_memory_store();
    constexpr std::uint32_t kAhead = 5;
    spawn(2, [&](Rank rank) {
      auto options = options_for(graph, rank, store, 100);
      options.frames_ahead = kAhead;
      auto transport = connect(name, options);
      std::vector<Swap> swaps;
      swaps.reserve(kAhead + 1);
      for (std::uint32_t bucket = 0; bucket <= kAhead; ++bucket) {
        swaps.emplace_back(graph, rank, ExchangeTag{.round = 0, .bucket = bucket}, 100);
      }
      if (rank == 1) {
        REQUIRE(store->get("ahead", generous()).ok());
      }
      for (const Swap& swap : swaps) {
        REQUIRE(transport->post(swap.exchange).ok());
      }
      std::set<std::uint32_t> done;
      while (done.size() <= kAhead) {
        if (rank == 0 && done.size() == kAhead) {
          // What is left waits for its receive.
          const auto early = transport->poll(Deadline::after(std::chrono::seconds(0)));
          CHECK(early.status().fault() == Fault::deadline);
          REQUIRE(store->set("ahead", {}).ok());
        }
        const auto event = transport->poll(generous());
        REQUIRE_MESSAGE(event.ok(), event.status().message());
        if (event->kind == TransportEvent::Kind::exchange_done) {
          CHECK(done.insert(event->tag.bucket).second);
        }
      }
    });
  }
}

TEST_CASE("a peer that never comes is a fault that names it") {
  for (const auto& name : conforming_transports()) {
    CAPTURE(name);
    const Graph graph = ring(2);
    auto options = options_for(graph, 0, make_memory_store(), 100);
    options.connect_timeout = std::chrono::milliseconds(200);
    const auto transport = open_transport(name, options);
    REQUIRE_FALSE(transport.ok());
    CHECK(transport.status().fault() == Fault::deadline);
    CHECK_MESSAGE(transport.status().message().find("node 1") != std::string::npos,
                  transport.status().message());
  }
}

TEST_CASE("a stop ends the wait for a peer that never comes, and names it") {
  for (const auto& name : conforming_transports()) {
    CAPTURE(name);
    auto options = options_for(ring(2), 0, make_memory_store(), 100);
    options.connect_timeout = std::chrono::hours(1);
    options.stop = [] { return true; };
    const auto transport = open_transport(name, options);
    REQUIRE_FALSE(transport.ok());
    CHECK(transport.status().fault() == Fault::stopped);
    CHECK_MESSAGE(transport.status().message().find("node 1") != std::string::npos,
                  transport.status().message());
  }
}

TEST_CASE("a stop ends a poll, which names whom it waited for") {
  const StopRequest stop = [] { return true; };
  for (const auto& name : conforming_transports()) {
    CAPTURE(name);
    const Graph graph = ring(2);
    const auto store = make_memory_store();
    spawn(2, [&](Rank rank) {
      const Swap swap(graph, rank, {.round = 41}, 100);
      const auto transport = connect(name, options_for(graph, rank, store, 100));
      if (rank == 1) {
        CHECK(store->get("done/0", generous()).ok());  // silent until then
        return;
      }
      CHECK(transport->post(swap.exchange).ok());
      const auto event = transport->poll(Deadline::after(std::chrono::hours(1), &stop));
      CHECK(store->set("done/0", {}).ok());
      REQUIRE_FALSE(event.ok());
      CHECK(event.status().fault() == Fault::stopped);
      CHECK_MESSAGE(event.status().message().find("1") != std::string::npos,
                    event.status().message());
    });
  }
}

}  // namespace sotto::test::conformance_test
