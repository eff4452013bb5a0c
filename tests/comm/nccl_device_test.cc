// NCCL itself on GPUs, where there are any: as many ranks as there are GPUs, as NCCL lets each have
// one of its own. With a single GPU that is one rank, which sends to itself.
#include <doctest/doctest.h>

#include "support/skip.h"

#ifdef SOTTO_HAVE_NCCL
#include <algorithm>
#include <utility>

#include "nodes.h"

using namespace sotto;
using namespace sotto::test;
using internal::DeviceMemory;
using internal::DeviceRoom;

namespace {

constexpr int kMostRanks = 8;

/// Ranks that this machine can carry, each on a device of its own; 0: none.
int ranks_here() { return std::min(kMostRanks, internal::count_cuda_devices()); }

}  // namespace

TEST_CASE("NCCL on a GPU: one rank sends itself messages of several lengths in one group") {
  const auto made = internal::make_cuda_device(0);
  if (!made) {
    SOTTO_SKIP(made.status().message());
  }
  internal::Device& device = **made;
  const auto library = internal::make_nccl_library();
  const auto id = library->make_id();
  REQUIRE_MESSAGE(id.ok(), id.status().message());
  const auto communicator = library->join(1, *id, 0);
  REQUIRE_MESSAGE(communicator.ok(), communicator.status().message());
  const auto settle = [&] {
    const auto end = generous();
    for (;;) {
      const auto settled = library->settled(*communicator);
      REQUIRE_MESSAGE(settled.ok(), settled.status().message());
      if (*settled) {
        return;
      }
      REQUIRE_FALSE(end.expired());
    }
  };
  settle();
  const auto stream = *device.make_stream();
  const auto mark = *device.make_event();
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{65'537}, std::size_t{1} << 24U}) {
    CAPTURE(bytes);
    const auto host = std::move(*DeviceMemory::make(device, DeviceRoom::pinned, bytes));
    const auto back = std::move(*DeviceMemory::make(device, DeviceRoom::pinned, bytes));
    const auto from = std::move(*DeviceMemory::make(device, DeviceRoom::device, bytes));
    const auto to = std::move(*DeviceMemory::make(device, DeviceRoom::device, bytes));
    std::uint32_t state = 1;
    for (std::byte& one : host.bytes()) {
      state = state * 1664525U + 1013904223U;
      one = static_cast<std::byte>(state >> 24U);
    }
    REQUIRE(device.copy(host.bytes(), from.bytes().data(), stream).ok());
    REQUIRE(library->begin_group().ok());
    REQUIRE(library->send(from.bytes(), 0, *communicator, stream).ok());
    REQUIRE(library->receive(to.bytes(), 0, *communicator, stream).ok());
    REQUIRE(library->end_group().ok());
    settle();
    REQUIRE(device.copy(to.bytes(), back.bytes().data(), stream).ok());
    REQUIRE(device.record(mark, stream).ok());
    const auto end = generous();
    for (auto passed = device.passed(mark); !*passed; passed = device.passed(mark)) {
      REQUIRE(passed.ok());
      REQUIRE_FALSE(end.expired());
    }
    CHECK(std::equal(back.bytes().begin(), back.bytes().end(), host.bytes().begin()));
  }
  REQUIRE(library->finalize(*communicator).ok());
  settle();
  library->abort(*communicator);
  device.destroy(mark);
  device.destroy(stream);
}

TEST_CASE("NCCL on GPUs: frames of all sizes, and a peer that leaves") {
  const int ranks = ranks_here();
  if (ranks < 2) {
    SOTTO_SKIP("needs two GPUs, as NCCL lets a rank have one alone; there are " << ranks);
  }
  const Graph graph = ring(ranks);
  run_nodes("nccl", graph, 1U << 20, [&](Rank rank, Transport& transport) {
    Round round = 0;
    for (const std::size_t size : {0U, 1U, 63U, 1000U, 65536U, 1U << 20}) {
      swap_frames(transport, graph, rank, {.round = round++}, size);
    }
  });
  const auto store = make_memory_store();
  spawn(ranks, [&](Rank rank) {
    const Swap swap(graph, rank, {.round = 1}, 100);
    const auto transport = connect("nccl", options_for(graph, rank, store, 100));
    swap_frames(*transport, graph, rank, {.round = 0}, 100);
    if (rank == ranks - 1) {
      return;
    }
    if (transport->post(swap.exchange).ok()) {
      const auto event = transport->poll(generous());
      REQUIRE_MESSAGE(event.ok(), event.status().message());
    }
  });
}

#else

TEST_CASE("NCCL on a GPU: one rank sends itself messages of several lengths in one group") {
  SOTTO_SKIP("built without NCCL");
}

TEST_CASE("NCCL on GPUs: frames of all sizes, and a peer that leaves") {
  SOTTO_SKIP("built without NCCL");
}

#endif
