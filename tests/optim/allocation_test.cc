// After construction no algorithm allocates: operator new of this program counts.
#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include <doctest/doctest.h>

#include "optim/cluster.h"
#include "optim/decorator.h"

namespace {

std::atomic<bool> counting = false;
std::atomic<int> allocations = 0;

void* counted(std::size_t size) {
  if (counting) {
    ++allocations;
  }
  if (void* memory = std::malloc(size == 0 ? 1 : size)) {
    return memory;
  }
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

using namespace sotto;
using namespace sotto::test;

namespace {

/// Counts what its algorithm allocates while it runs.
class Watched final : public Decorator {
 public:
  using Decorator::Decorator;

  bool begin_round(Exchange& out) override {
    const Window window;
    return inner().begin_round(out);
  }
  Status gradient_ready(std::span<const float> gradient, Exchange& out, bool* post) override {
    const Window window;
    return inner().gradient_ready(gradient, out, post);
  }
  Status frame_arrived(const ExchangeTag& tag, Rank from,
                       std::span<const std::byte> frame) override {
    const Window window;
    return inner().frame_arrived(tag, from, frame);
  }
  Result<bool> exchange_done(const ExchangeTag& tag, Exchange& out) override {
    const Window window;
    return inner().exchange_done(tag, out);
  }

 private:
  struct Window {
    Window() { counting = true; }
    ~Window() { counting = false; }
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;
  };
};

}  // namespace

TEST_CASE("no algorithm allocates after its construction, once exchanges have their capacity") {
  for (const AlgorithmInfo& info : algorithms()) {
    for (const std::string topology : {"ring", "base:2"}) {
      if (topology != "ring" && !info.time_varying) {
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

TEST_CASE("local steps allocate nothing either") {
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    Cluster cluster(
        {.algorithm = std::string(info.name), .dimension = 5000, .communication_interval = 2},
        [](auto inner) { return std::make_unique<Watched>(std::move(inner)); });
    const Quadratic task(8, 5000, 5);
    REQUIRE(cluster.driver.run(10, task).ok());
    allocations = 0;
    REQUIRE(cluster.driver.run(6, task).ok());
    CHECK(allocations == 0);
  }
}
