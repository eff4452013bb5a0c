// What keeps the runs that use one store apart.
#include <sotto/comm/session.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "nodes.h"

using namespace sotto;
using namespace sotto::test;
using namespace std::chrono_literals;

namespace {

constexpr int kNodes = 4;

std::vector<std::byte> byte(int value) { return {static_cast<std::byte>(value)}; }

/// Every node publishes `value` and reads what all published.
void exchange(const std::shared_ptr<Store>& store, int value) {
  spawn(kNodes, [&](Rank rank) {
    const auto session = make_session(store, rank, kNodes, 1h);
    const std::string mine = "value/" + std::to_string(rank);
    REQUIRE(session->set(mine, byte(value)).ok());
    for (int peer = 0; peer < kNodes; ++peer) {
      const auto seen = session->get("value/" + std::to_string(peer), generous());
      REQUIRE(seen.ok());
      CHECK(*seen == byte(value));
    }
  });
}

}  // namespace

TEST_CASE("a session sees its own keys, and those of no run before it") {
  const auto store = make_memory_store();
  for (int run = 0; run < 20; ++run) {
    exchange(store, run);
  }
}

TEST_CASE("a session names who did not come, on both sides, and stays failed") {
  const auto store = make_memory_store();
  exchange(store, 1);  // what it leaves behind is no sign of life
  const auto of_node_0 = make_session(store, 0, 3, 30ms);
  const Status absent = of_node_0->set("key", {});
  CHECK(absent.fault() == Fault::deadline);
  CHECK(absent.message() == "node 0: waiting for node 1, 2: not there in time");
  CHECK(of_node_0->get("key", generous()).status().message() == absent.message());

  const auto of_node_2 = make_session(store, 2, 3, 30ms);
  CHECK(of_node_2->remove("key").message() == "node 2: waiting for node 0: not there in time");
}

TEST_CASE("one node needs nobody") {
  const auto session = make_session(make_memory_store(), 0, 1, 30ms);
  CHECK(session->set("key", byte(3)).ok());
  CHECK(session->get("key", generous()).ok());
}

TEST_CASE("what somebody else wrote under a session's keys passes for no number") {
  const auto store = make_memory_store();
  REQUIRE(store->set("session", byte(1)).ok());
  const auto session = make_session(store, 1, 2, 30ms);
  CHECK(session->set("key", {}).fault() == Fault::deadline);
}
