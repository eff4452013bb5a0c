// The transport nccl on GPUs: as many ranks as there are GPUs, as NCCL lets each have one alone.
#include <doctest/doctest.h>

#include "support/skip.h"

#ifdef SOTTO_HAVE_NCCL
#include <algorithm>

#include "nodes.h"
#endif

namespace sotto::test::nccl_devices_test {

#ifdef SOTTO_HAVE_NCCL

namespace {

constexpr int kMostRanks = 8;

}  // namespace

TEST_CASE("NCCL on GPUs: frames of all sizes, and a peer that leaves") {
  const int ranks = std::min(kMostRanks, internal::count_cuda_devices());
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

TEST_CASE("NCCL on GPUs: frames of all sizes, and a peer that leaves") {
  SOTTO_SKIP("built without NCCL");
}

#endif

}  // namespace sotto::test::nccl_devices_test
