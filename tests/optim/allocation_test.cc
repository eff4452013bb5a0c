// An algorithm takes the memory that it states when it is constructed, and none after: operator new
// of this program counts.
#include <malloc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <new>
#include <optional>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/optim/wrappers/forwarding_algorithm.h>

#include "optim/cluster.h"

namespace sotto::test::allocation_test {

namespace {

std::atomic<bool> counting = false;
std::atomic<int> allocations = 0;
std::atomic<std::ptrdiff_t> live_bytes = 0;  ///< allocated and not freed while it counts

/// The blocks that were allocated last while it counts, but for small ones.
struct Block {
  const void* memory = nullptr;
  std::size_t size = 0;
};
std::array<Block, 65536> blocks;
std::size_t next_block = 0;
constexpr std::size_t kLargeBlock = 64;

void* counted(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) {
  const std::size_t whole =
      (std::max<std::size_t>(size, 1) + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, whole);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  if (counting) {
    ++allocations;
    live_bytes += static_cast<std::ptrdiff_t>(::malloc_usable_size(memory));
    if (size >= kLargeBlock) {
      blocks[next_block++ % blocks.size()] = {memory, size};
    }
  }
  return memory;
}

void release(void* memory) {
  if (counting) {
    live_bytes -= static_cast<std::ptrdiff_t>(::malloc_usable_size(memory));
  }
  std::free(memory);
}

}  // namespace

}  // namespace sotto::test::allocation_test

using sotto::test::allocation_test::counted;
using sotto::test::allocation_test::release;

void* operator new(std::size_t size) { return counted(size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept { release(memory); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }

namespace sotto::test::allocation_test {

namespace {

struct Window {
  Window() { counting = true; }
  ~Window() { counting = false; }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
};

/// Counts what its algorithm allocates while it runs.
class Watched final : public ForwardingAlgorithm {
 public:
  using ForwardingAlgorithm::ForwardingAlgorithm;

  void begin_round() override {
    const Window window;
    inner().begin_round();
  }
  Status take_gradient(std::span<const float> gradient) override {
    const Window window;
    return inner().take_gradient(gradient);
  }
  Result<bool> next_exchange(Exchange& out) override {
    const Window window;
    return inner().next_exchange(out);
  }
  Status complete(const Exchange& exchange) override {
    const Window window;
    return inner().complete(exchange);
  }
};

/// Notes the buffers of the frames that its algorithm sends and receives.
class FrameWatch final : public ForwardingAlgorithm {
 public:
  using ForwardingAlgorithm::ForwardingAlgorithm;

  Result<bool> next_exchange(Exchange& out) override {
    auto posted = inner().next_exchange(out);
    if (posted.ok() && *posted) {
      for (const Send& send : out.sends) {
        longest_sent_ = std::max(longest_sent_, note(send.frame.data()));
      }
      for (const Receive& receive : out.receives) {
        (void)note(receive.buffer.data());
      }
    }
    return posted;
  }
  /// Bytes of all these buffers, as they were allocated, and of the longest frame's where
  /// none of that length was sent: a model is handed over to a new neighbour, or to one that
  /// lost it.
  std::size_t bytes() const {
    std::size_t sum = longest_sent_ < peers().max_frame_bytes ? peers().max_frame_bytes : 0;
    for (const auto& [buffer, size] : buffers_) {
      sum += size;
    }
    return sum;
  }

 private:
  std::size_t note(const std::byte* buffer) {
    REQUIRE(next_block <= blocks.size());
    // The last one there: earlier ones had been freed.
    const auto end = blocks.rend();
    const auto block =
        std::find_if(blocks.rbegin(), end, [&](const Block& one) { return one.memory == buffer; });
    REQUIRE(block != end);
    return buffers_[buffer] = block->size;
  }

  std::map<const std::byte*, std::size_t> buffers_;
  std::size_t longest_sent_ = 0;
};

constexpr std::size_t kMemoryDimension = 60'000;

/// Floats a parameter that node 0 allocates as it is constructed.
double constructed_floats(const ClusterOptions& options) {
  std::vector<float> x(options.dimension);
  auto setup = node_setup(options, 0, x, cluster_topology(options));
  live_bytes = 0;
  std::unique_ptr<Algorithm> made;
  {
    const Window window;
    made = make_algorithm(spec_of(options), std::move(setup));
  }
  return static_cast<double>(live_bytes) / static_cast<double>(sizeof(float) * x.size());
}

/// Floats a parameter that the frames take of these.
double frame_floats(const ClusterOptions& options) {
  const auto topology = cluster_topology(options);
  std::vector<const FrameWatch*> nodes;
  std::optional<Cluster> cluster;
  {
    blocks = {};
    next_block = 0;
    const Window window;
    cluster.emplace(options, topology, [&](auto inner) {
      auto watch = std::make_unique<FrameWatch>(std::move(inner));
      nodes.push_back(watch.get());
      return watch;
    });
  }
  const Quadratic task(options.nodes, options.dimension, 5);
  REQUIRE(cluster->driver.run(6, task).ok());
  return static_cast<double>(nodes.front()->bytes()) /
         static_cast<double>(sizeof(float) * options.dimension);
}

int most_neighbours_a_round(const Topology& topology) {
  std::size_t most = 0;
  for (Round round = 0; round < topology.period(); ++round) {
    most = std::max(most, topology.in_edges(0, round).size());
  }
  return static_cast<int>(most);
}

}  // namespace

TEST_CASE("an algorithm takes the memory that it states") {
  for (const AlgorithmInfo& info : algorithms()) {
    for (const std::string topology : {"ring", "base:2"}) {
      const bool changes = topology == "base:2";
      if (changes && !info.takes_changing_graphs()) {
        continue;
      }
      CAPTURE(info.name);
      CAPTURE(topology);
      const ClusterOptions options{
          .algorithm = std::string(info.name), .topology = topology, .dimension = kMemoryDimension};
      const auto graph = cluster_topology(options);
      // Dion's AdamW is for what is no matrix.
      const bool has_moments = !info.step_rules.only.empty() && info.step_rules.only != "sgd" &&
                               info.step_rules.only != "adamw";
      const double of_rule = has_moments ? 2 : 0;  // Adam's and LAMB's
      const double stated =
          state_floats(info.memory, graph->nodes(), most_neighbours_a_round(*graph), changes);
      const double constructed = constructed_floats(options);
      const double frames = frame_floats(options);
      const double state = constructed - of_rule - frames;
      CAPTURE(constructed);
      CAPTURE(frames);
      // What is more are a few pages' worth of small things, and factors of matrices.
      CHECK(state >= stated);
      CHECK(state <= 1.04 * stated);
    }
  }
}

TEST_CASE("hyperparameters add the memory that they state, and no other does") {
  for (const AlgorithmInfo& info : algorithms()) {
    for (const Hyperparameter& one : info.hyperparameters) {
      std::string value = "0.5";
      if (one.kind == HyperparameterKind::choice) {
        value = one.choices.back() == one.fallback ? one.choices.front() : one.choices.back();
      } else if (one.kind != HyperparameterKind::real || one.fallback.empty()) {
        CHECK(one.floats == 0);
        continue;
      }
      CAPTURE(info.name);
      CAPTURE(one.key);
      ClusterOptions options{.algorithm = std::string(info.name), .dimension = kMemoryDimension};
      const double without = constructed_floats(options);
      options.algorithm = fmt::format("{}:{}={}", info.name, one.key, value);
      const double more = constructed_floats(options) - without;
      // Small things may lie otherwise.
      CHECK(more >= one.floats - 0.04);
      CHECK(more <= one.floats + 0.04);
    }
  }
  CHECK(state_formula(algorithm_info("ef21")) == "4, and 1 with momentum");
  CHECK(state_formula(algorithm_info("sparseloco")) == "3, and 1 with aggregate");
}

TEST_CASE("a sharded optimizer has an n-th of the step rule's moments on each node") {
  // So long that what the allocator rounds up to does not matter.
  constexpr std::size_t kLong = 2'000'000;
  for (const std::size_t nodes : {2U, 8U, 16U}) {
    CAPTURE(nodes);
    ClusterOptions options{
        .algorithm = "sharded", .nodes = nodes, .dimension = kLong, .step = {.rule = "adam"}};
    const double with_adam = constructed_floats(options);
    options.step = {};
    const double moments = with_adam - constructed_floats(options);
    CHECK(moments == doctest::Approx(2.0 / static_cast<double>(nodes)).epsilon(0.02));
    options.algorithm = "allreduce";
    const double whole = -constructed_floats(options);
    options.step = {.rule = "adam"};
    CHECK(whole + constructed_floats(options) == doctest::Approx(2).epsilon(0.02));
  }
}

TEST_CASE("no algorithm allocates after its construction, once exchanges have their capacity") {
  for (const AlgorithmInfo& info : algorithms()) {
    for (const std::string topology : {"ring", "base:2"}) {
      if (topology != "ring" && !info.takes_changing_graphs()) {
        continue;
      }
      CAPTURE(info.name);
      CAPTURE(topology);
      Cluster cluster(
          {.algorithm = std::string(info.name), .topology = topology, .dimension = 5000},
          [](auto inner) { return std::make_unique<Watched>(std::move(inner)); });
      const Quadratic task(8, 5000, 5);
      REQUIRE(cluster.driver.run(10, task).ok());
      allocations = 0;
      REQUIRE(cluster.driver.run(5, task).ok());
      CHECK(allocations == 0);
    }
  }
}

TEST_CASE("local steps allocate nothing either, in fragments or with the outer rule last") {
  const auto check_quiet = [](const ClusterOptions& options) {
    Cluster cluster(options,
                    [](auto inner) { return std::make_unique<Watched>(std::move(inner)); });
    const Quadratic task(8, 5000, 5);
    REQUIRE(cluster.driver.run(12, task).ok());
    allocations = 0;
    REQUIRE(cluster.driver.run(8, task).ok());
    CHECK(allocations == 0);
  };
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    ClusterOptions options{.algorithm = std::string(info.name),
                           .dimension = 5000,
                           .step = {.learning_rate = 0.02},
                           .communication_interval = 2};
    check_quiet(options);
    if (info.takes_fragments()) {
      options.communication_interval = 4;
      options.streaming = {.fragments = 2, .delay = 1, .mix = {.own = 0.5}};
      check_quiet(options);
    }
    if (info.takes_outer_after_mixing()) {
      options.outer_after_mixing = true;
      check_quiet(options);
    }
  }
}

}  // namespace sotto::test::allocation_test
