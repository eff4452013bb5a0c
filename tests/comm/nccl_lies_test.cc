// The transport nccl beside a peer whose frames or notices lie (nccl_test.cc).
#include <cstring>
#include <optional>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/comm/internal/address/address.h>
#include <sotto/comm/internal/meeting/rendezvous.h>
#include <sotto/comm/stores.h>

#include "nccl_nodes.h"

namespace sotto::test::nccl_lies_test {

namespace {

constexpr std::size_t kMost = 50'000;

}  // namespace

TEST_CASE("nccl: a frame whose header lies costs its sender, and nothing of it is delivered") {
  const Graph graph = ring(3);
  const auto store = make_memory_store();
  std::string lie;
  std::size_t at = 0;
  std::byte value{};
  SUBCASE("of its length: more than fits") {
    lie = "payload of";
    at = 50;
    value = std::byte{1};
  }
  SUBCASE("of its length: less than came") {
    lie = "announced 1064 bytes for a frame of 1063";
    at = 48;
    value = std::byte{0xE7};
  }
  SUBCASE("of what it is") { lie = "magic"; }
  SUBCASE("of its round") {
    lie = "where that of round 1, phase 0, bucket 0 was due";
    at = 16;
    value = std::byte{9};
  }
  spawn(3, [&](Rank rank) {
    Swap swap(graph, rank, {.round = 1}, 1000);
    const Swap after(graph, rank, {.round = 2}, 1000);
    const auto transport = connect(kFakeNccl, options_for(graph, rank, store, 1000));
    if (rank == 2) {
      swap.frames[0][at] = value;  // to rank 0
    }
    const auto untouched = swap.rooms;
    REQUIRE(transport->post(swap.exchange).ok());
    if (rank != 0) {
      while (next_event(*transport).kind != TransportEvent::Kind::exchange_done) {
      }
      REQUIRE(store->get("seen", generous()).ok());
      return;
    }
    std::set<Rank> heard;
    for (int i = 0; i < 2; ++i) {
      const auto event = next_event(*transport);
      heard.insert(event.peer);
      if (event.peer == 1) {
        CHECK(event.kind == TransportEvent::Kind::frame);
        continue;
      }
      CHECK(event.kind == TransportEvent::Kind::peer_lost);
      CHECK(event.needed);
      CHECK_MESSAGE(event.reason.find(lie) != std::string::npos, event.reason);
    }
    CHECK(heard == std::set<Rank>{1, 2});
    CHECK(swap.rooms[1] == untouched[1]);
    CHECK(transport->post(after.exchange).fault() == Fault::peer_lost);
    REQUIRE(store->set("seen", {}).ok());
  });
}

TEST_CASE("nccl: a frame that its room does not hold costs its sender, who is told") {
  const Graph graph = ring(2);
  const auto store = make_memory_store();
  bool on_device = false;
  SUBCASE("a room of the host") {}
  SUBCASE("a room on the device") { on_device = true; }
  spawn(2, [&](Rank rank) {
    Swap swap(graph, rank, {.round = 0}, rank == 0 ? 100 : 1000, rank == 0 ? 500 : 1000);
    NcclNode node(options_for(graph, rank, store, kMost), fake_world());
    std::optional<OnDevice> room;
    if (on_device && rank == 0) {
      room.emplace(*node.device, swap.exchange.receives[0].buffer.size());
      swap.exchange.receives[0].buffer = room->bytes();
    }
    REQUIRE(node.transport->post(swap.exchange).ok());
    auto event = next_event(*node.transport);
    while (event.kind != TransportEvent::Kind::peer_lost) {
      CHECK(rank == 1);
      event = next_event(*node.transport);
    }
    CHECK_MESSAGE(event.reason.find(rank == 0 ? "payload of 1000 bytes" : "takes nothing more") !=
                      std::string::npos,
                  event.reason);
    REQUIRE(store->set(fmt::format("told/{}", rank), {}).ok());
    REQUIRE(store->get(fmt::format("told/{}", 1 - rank), generous()).ok());
  });
}

TEST_CASE("nccl: a peer that announces what no frame can be is lost") {
  const Graph graph = ring(2);
  const auto store = make_memory_store();
  std::uint64_t bytes = 0;
  SUBCASE("less than a header") { bytes = kFrameHeaderBytes - 1; }
  SUBCASE("more than the longest frame") { bytes = kFrameHeaderBytes + kMost + 1; }
  spawn(2, [&](Rank rank) {
    const auto options = options_for(graph, rank, store, kMost);
    const Swap swap(graph, rank, {.round = 0}, 10);
    if (rank == 0) {
      NcclNode node(options, fake_world());
      const Status posted = node.transport->post(swap.exchange);
      REQUIRE((posted.ok() || posted.fault() == Fault::peer_lost));
      if (posted.ok()) {
        const auto told = losses(*node.transport);
        REQUIRE(told.size() == 1);
        CHECK_MESSAGE(told.front().reason.find("announced a frame of") != std::string::npos,
                      told.front().reason);
      }
      REQUIRE(store->set("told", {}).ok());
      return;
    }
    // What the transport does to join, by hand.
    const auto id = internal::meet(options, "nccl-id", {{0, {}}}, generous());
    REQUIRE(id.ok());
    internal::CommunicatorId communicator{};
    std::memcpy(communicator.data(), id->at(0).data(), communicator.size());
    const auto device = std::make_shared<FakeDevice>();
    FakeNccl library(fake_world(), device);
    internal::ControlLinks control(options);
    REQUIRE(control
                .connect(internal::resolve_bind_address(
                             "bind", options.bind, {.beyond_loopback = false, .everywhere = false}),
                         generous())
                .ok());
    const auto joined = library.join(2, communicator, rank);
    REQUIRE(joined.ok());
    control.tell(0, {.kind = internal::Notice::Kind::frame, .bytes = bytes});
    REQUIRE(store->get("told", generous()).ok());
    library.abort(*joined);
  });
}

}  // namespace sotto::test::nccl_lies_test
