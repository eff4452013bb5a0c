// What it costs the store that nodes meet through it: a start of many nodes at once must not drown
// the store in requests.
#include "../../comm/internal/meeting/rendezvous.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>

#include <sotto/comm/session.h>
#include <sotto/comm/stores.h>

#include "nodes.h"

namespace sotto::test::rendezvous_test {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMostPayload = 100;

/// Counts the requests that reach a store.
class CountingStore final : public Store {
 public:
  Status set(std::string_view key, std::span<const std::byte> value) override {
    ++requests;
    return store_->set(key, value);
  }
  Result<std::vector<std::byte>> get(std::string_view key, Deadline deadline) override {
    ++requests;
    return store_->get(key, deadline);
  }
  Status remove(std::string_view key) override {
    ++requests;
    return store_->remove(key);
  }
  std::atomic<int> requests{0};

 private:
  const std::shared_ptr<Store> store_ = make_memory_store();
};

/// A store in which nobody else ever comes, and whose time passes as it is waited in.
class LonelyStore final : public Store {
 public:
  explicit LonelyStore(Deadline::Clock::duration end) : left_(end) {}
  Status set(std::string_view, std::span<const std::byte>) override { return {}; }
  Result<std::vector<std::byte>> get(std::string_view, Deadline deadline) override {
    ++looks;
    left_ -= deadline.left();
    return left_.count() > 0 ? Status(Fault::deadline, "not yet") : Status(Fault::io, "over");
  }
  Status remove(std::string_view) override { return {}; }
  int looks = 0;

 private:
  Deadline::Clock::duration left_;
};

}  // namespace

TEST_CASE("a neighbour that is there costs the store seven requests") {
  constexpr int kNodes = 16;
  const auto store = std::make_shared<CountingStore>();
  const Graph graph = complete(kNodes);
  spawn(kNodes, [&](Rank rank) {
    internal::Addresses mine;
    for (Rank peer = 0; peer < kNodes; ++peer) {
      if (peer != rank) {
        mine[peer] = {static_cast<std::byte>(rank)};
      }
    }
    const auto met =
        internal::meet(options_for(graph, rank, store, kMostPayload), "test", mine, generous());
    REQUIRE(met.ok());
    for (const auto& [peer, address] : *met) {
      CHECK(address == std::vector{static_cast<std::byte>(peer)});
    }
  });
  // And twice as many where a machine is so busy that threads look in vain.
  CHECK(store->requests <= 2 * 7 * kNodes * (kNodes - 1));
}

TEST_CASE("who waits for a neighbour asks for it ever more rarely") {
  const auto store = std::make_shared<LonelyStore>(10s);
  const auto met = internal::meet(options_for(ring(2), 0, store, kMostPayload), "test",
                                  {{1, {std::byte{1}}}}, Deadline::after(1h));
  CHECK(met.status().fault() == Fault::io);
  CHECK(store->looks <= 60);
}

TEST_CASE("who waits for the session to begin asks for it ever more rarely") {
  const auto store = std::make_shared<LonelyStore>(10s);
  const auto session = make_session(store, 1, 2, 1h);
  CHECK(session->enter().fault() == Fault::io);
  CHECK(store->looks <= 60);
}

}  // namespace sotto::test::rendezvous_test
