// Nothing piles up over many lives of a transport.
#include <filesystem>

#include <doctest/doctest.h>

#include "nodes.h"
#include "support/scratch.h"

namespace sotto::test::resources_test {

namespace {

std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

}  // namespace

TEST_CASE("transports give back their descriptors") {
  for (const auto& name : conforming_transports()) {
    CAPTURE(name);
    const Graph graph = ring(3);
    const auto live = [&] {
      run_nodes(name, graph, 100, [&](Rank rank, Transport& transport) {
        swap_frames(transport, graph, rank, {.round = 0}, 100);
      });
    };
    live();
    const auto before = open_descriptors();
    const int lives = name == kSecured ? 10 : 50;  // each tries its doors first, which takes time
    for (int i = 0; i < lives; ++i) {
      live();
    }
    CHECK(open_descriptors() == before);
  }
}

TEST_CASE("nothing of a run stays in the store") {
  for (const auto& name : conforming_transports()) {
    if (joins_threads(name)) {
      continue;
    }
    CAPTURE(name);
    const Scratch directory;
    const Graph graph = complete(4);
    const auto store = make_file_store(directory.path().string());
    spawn(4, [&](Rank rank) {
      const auto transport = connect(name, options_for(graph, rank, store, 100));
      swap_frames(*transport, graph, rank, {.round = 0}, 100);
    });
    CHECK(std::filesystem::is_empty(directory.path()));
  }
}

TEST_CASE("a run may follow another through the same store") {
  for (const auto& name : conforming_transports()) {
    CAPTURE(name);
    const Graph graph = ring(3);
    const auto store = make_memory_store();
    for (int run = 0; run < 5; ++run) {
      spawn(3, [&](Rank rank) {
        const auto transport = connect(name, options_for(graph, rank, store, 100));
        swap_frames(*transport, graph, rank, {.round = 0}, 100);
      });
    }
  }
}

TEST_CASE("two runs may share a store") {
  for (const auto& name : conforming_transports()) {
    CAPTURE(name);
    const Graph graph = ring(3);
    const auto store = make_memory_store();
    spawn(6, [&](Rank thread) {
      const Rank rank = thread % 3;
      auto options = options_for(graph, rank, store, 100);
      options.run_id = thread < 3 ? 1 : 2;
      const auto transport = connect(name, options);
      for (Round round = 0; round < 20; ++round) {
        swap_frames(*transport, graph, rank, {.round = round}, 100);
      }
    });
  }
}

}  // namespace sotto::test::resources_test
