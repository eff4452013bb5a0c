// Frames on a device over the transports of the host (comm/gpu/staged_transport.h), on a device
// that is none (fake_device.h).
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include <doctest/doctest.h>

#include <sotto/comm/gpu/staged_transport.h>

#include "nccl_nodes.h"

using namespace sotto;
using namespace sotto::test;

TEST_CASE("frames of a device pass through pinned memory over every transport of the host") {
  for (const std::string name : {"inproc", "gloo", "zmq"}) {
    const auto names = available_transports();
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      continue;
    }
    CAPTURE(name);
    const Graph graph = ring(3);
    const auto store = make_memory_store();
    spawn(3, [&](Rank rank) {
      const auto device = std::make_shared<FakeDevice>();
      const auto stream = *device->make_stream();
      {
        internal::StagedTransport transport(connect(name, options_for(graph, rank, store, 70'000)),
                                            device, stream);
        CHECK(transport.name() == name);
        for (Round round = 0; round < 20; ++round) {
          const std::size_t payload = 3500 * round;
          Swap swap(graph, rank, {.round = round}, payload);
          std::vector<OnDevice> memory;
          memory.reserve(3);
          // One frame of the host among them.
          swap.exchange.sends[0].frame =
              memory.emplace_back(*device, swap.exchange.sends[0].frame).bytes();
          for (Receive& receive : swap.exchange.receives) {
            receive.buffer = memory.emplace_back(*device, receive.buffer.size()).bytes();
          }
          REQUIRE(transport.post(swap.exchange).ok());
          while (next_event(transport).kind != TransportEvent::Kind::exchange_done) {
          }
          // Behind the copies on the stream, as a program's own work would be.
          const auto mark = *device->make_event();
          REQUIRE(device->record(mark, stream).ok());
          while (!*device->passed(mark)) {
            std::this_thread::yield();
          }
          device->destroy(mark);
          for (std::size_t i = 0; i < 2; ++i) {
            CHECK(memory[i + 1].copy(kFrameHeaderBytes + payload) ==
                  make_frame(swap.exchange.receives[i].from, rank, {.round = round}, payload));
          }
        }
      }
      device->destroy(stream);
    });
  }
}

TEST_CASE("a peer that died shows through staged frames, and unfinished copies are waited for") {
  const Graph graph = ring(2);
  const auto store = make_memory_store();
  spawn(2, [&](Rank rank) {
    const auto device = std::make_shared<FakeDevice>();
    const auto stream = *device->make_stream();
    {
      Swap swap(graph, rank, {.round = 0}, 1000);
      const OnDevice frame(*device, swap.exchange.sends[0].frame);
      swap.exchange.sends[0].frame = frame.bytes();
      internal::StagedTransport transport(connect("inproc", options_for(graph, rank, store, 1000)),
                                          device, stream);
      if (rank == 0) {
        REQUIRE(transport.post(swap.exchange).ok());
        const auto event = transport.poll(generous());
        const bool lost = event.ok() ? event->kind == TransportEvent::Kind::peer_lost
                                     : event.status().fault() == Fault::peer_lost;
        CHECK(lost);
      }
    }
    device->destroy(stream);
  });
}

TEST_CASE("staged frames are posted and polled by threads that have chosen no device") {
  const Graph graph = ring(2);
  const auto store = make_memory_store();
  spawn(2, [&](Rank rank) {
    const auto device = std::make_shared<FakeDevice>();
    const auto stream = *device->make_stream();
    {
      Swap first(graph, rank, {.round = 0}, 1000);
      Swap second(graph, rank, {.round = 1}, 1000);
      const OnDevice frame(*device, first.exchange.sends[0].frame);
      const OnDevice room(*device, first.exchange.receives[0].buffer.size());
      const OnDevice later(*device, second.exchange.sends[0].frame);
      first.exchange.sends[0].frame = frame.bytes();
      first.exchange.receives[0].buffer = room.bytes();
      second.exchange.sends[0].frame = later.bytes();
      internal::StagedTransport transport(connect("inproc", options_for(graph, rank, store, 1000)),
                                          device, stream);
      spawn(1, [&](Rank) {
        REQUIRE(transport.post(first.exchange).ok());
        while (next_event(transport).kind != TransportEvent::Kind::exchange_done) {
        }
      });
      spawn(1, [&](Rank) { (void)transport.post(second.exchange); });  // the peer may be gone
    }
    device->destroy(stream);
  });
}

TEST_CASE("a device that refuses its work shows through staged frames, and memory is not reused") {
  const Graph graph = ring(2);
  const auto store = make_memory_store();
  spawn(2, [&](Rank rank) {
    const auto device = std::make_shared<FakeDevice>();
    const auto stream = *device->make_stream();
    Swap first(graph, rank, {.round = 0}, 1000);
    const Swap second(graph, rank, {.round = 1}, 1000);
    std::optional<OnDevice> room(std::in_place, *device, first.exchange.receives[0].buffer.size());
    first.exchange.receives[0].buffer = room->bytes();
    {
      internal::StagedTransport transport(connect("inproc", options_for(graph, rank, store, 1000)),
                                          device, stream);
      if (rank == 0) {
        device->break_marks();  // nobody can tell when the frame has left pinned memory
      }
      REQUIRE(transport.post(first.exchange).ok());
      while (next_event(transport).kind != TransportEvent::Kind::exchange_done) {
      }
      if (rank == 0) {
        device->break_lookups();
        const Status refused = transport.post(second.exchange);
        CHECK(refused.fault() == Fault::io);
        CHECK(refused.message().find("the device is lost") != std::string::npos);
      }
    }
    device->destroy(stream);
    room.reset();  // copies to it may have been under way until here
    CHECK(device->reclaim() == (rank == 0 ? 1U : 0U));
  });
}
