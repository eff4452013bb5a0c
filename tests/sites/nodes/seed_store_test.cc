// A node's dealings with a store of seeds, in a thread of its own: it finds others, goes on beside
// a store that is gone, and begins a run by its word.
#include <sotto/sites/nodes/stores/seed_store.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/sites/nodes/stores/node_store.h>

#include "support/fake_shared_store.h"
#include "support/scratch.h"

namespace sotto::test::seed_store_test {
using namespace std::chrono_literals;

namespace {

SeedStoreOptions quick(std::chrono::milliseconds patience = 1h) {
  return {.url = "the test's store", .patience = patience, .lease = 300ms, .look = 2ms};
}

class Fixture {
 public:
  /// A node of this number.
  std::unique_ptr<SeedStore> node(std::uint64_t id, std::chrono::milliseconds patience = 1h) {
    return node(id, quick(patience));
  }
  std::unique_ptr<SeedStore> node(std::uint64_t id, const SeedStoreOptions& options) {
    return std::make_unique<SeedStore>(
        [store = fake](const StopRequest&) { return store; }, key,
        sites::SeedLease{
            .name = "n" + std::to_string(id), .incarnation = id, .address = address(id)},
        options);
  }
  static std::string address(std::uint64_t id) { return "10.0.0." + std::to_string(id) + ":9000"; }
  const std::shared_ptr<FakeSharedStore> fake = std::make_shared<FakeSharedStore>();
  const RunKey key{make_key_pair()};
};

/// Waits until that holds; the test's time limit ends what never does.
template <typename Wanted>
void await(const Wanted& wanted) {
  while (!wanted()) {
    std::this_thread::sleep_for(1ms);
  }
}

bool finds(SeedStore& node, std::vector<std::string> addresses) {
  const auto seeds = node.board().seeds();
  if (!seeds) {
    return false;
  }
  std::vector<std::string> found;
  for (const sites::RosterSeed& seed : *seeds) {
    found.push_back(seed.address);
  }
  std::ranges::sort(found);
  std::ranges::sort(addresses);
  return found == addresses;
}

std::optional<SiteEvent> told(SeedStore& node, SiteEvent::Kind kind) {
  std::optional<SiteEvent> event;
  await([&] {
    for (const SiteEvent& one : node.board().news()) {
      event = one.kind == kind ? std::optional(one) : event;
    }
    return event.has_value();
  });
  return event;
}

}  // namespace

TEST_CASE("seed stores: nodes find each other and not those that have left or were killed") {
  Fixture all;
  const auto a = all.node(1);
  auto b = all.node(2);
  const auto c = all.node(3);
  await([&] { return finds(*a, {Fixture::address(2), Fixture::address(3)}); });
  await([&] { return finds(*c, {Fixture::address(1), Fixture::address(2)}); });
  // One that was killed has a lease that nobody renews.
  NodeStore store(all.fake, all.key);
  std::size_t free = 0;
  await([&] {
    return store.leases
        .claim(free++, {.name = "dead", .incarnation = 9, .address = Fixture::address(9)},
               Deadline::after(1h))
        .value();
  });
  await([&] { return finds(*a, {Fixture::address(2), Fixture::address(3), Fixture::address(9)}); });
  await([&] { return finds(*a, {Fixture::address(2), Fixture::address(3)}); });
  b.reset();
  CHECK(all.fake->values().size() == 2);
  await([&] { return finds(*a, {Fixture::address(3)}); });
  c->board().leave();
  await([&] { return finds(*a, {}); });
  CHECK(all.fake->values().size() == 1);
}

TEST_CASE("seed stores: a store that is gone ends no node and is told of twice") {
  Fixture all;
  const auto a = all.node(1, 1ms);
  const auto b = all.node(2);
  await([&] { return finds(*a, {Fixture::address(2)}); });
  all.fake->set_gone(true);
  const auto silent = told(*a, SiteEvent::Kind::store_silent);
  CHECK(silent->level == SiteEvent::Level::warning);
  CHECK(silent->text.find("the test's store is gone") != std::string::npos);
  const std::size_t looks = all.fake->looks();
  await([&] { return all.fake->looks() > looks + 200; });
  CHECK(a->board().standing().ok());
  CHECK(a->board().news().empty());
  CHECK(finds(*a, {Fixture::address(2)}));
  all.fake->set_gone(false);
  CHECK(told(*a, SiteEvent::Kind::store_answers)->level == SiteEvent::Level::info);
  CHECK(finds(*a, {Fixture::address(2)}));
  // One that was emptied meanwhile has the leases again.
  for (const auto& [key, value] : all.fake->values()) {
    CHECK(all.fake->remove(key).ok());
  }
  const auto c = all.node(3);
  await([&] { return finds(*c, {Fixture::address(1), Fixture::address(2)}); });
}

TEST_CASE("seed stores: one that never answers is waited for as long as its patience") {
  Fixture all;
  all.fake->set_gone(true);
  const auto patient = all.node(1);
  const auto other = all.node(2, 1ms);
  await([&] { return other->board().standing().fault() == Fault::deadline; });
  await([&] {
    return other->board().standing().message().find("store is gone") != std::string::npos;
  });
  CHECK(patient->board().standing().ok());
  CHECK_FALSE(patient->board().seeds());
  CHECK_FALSE(patient->board().runs().known);
  all.fake->set_gone(false);
  await([&] { return patient->board().seeds().has_value() && other->board().standing().ok(); });
}

TEST_CASE("seed stores: of two nodes that want to begin a run one does and its end is told") {
  Fixture all;
  const auto a = all.node(1);
  auto b = all.node(2);
  const StoredRun of_a{.number = 1, .id = {1, 1}, .name = "a", .address = "10.0.0.1:9000"};
  const StoredRun of_b{.number = 1, .id = {2, 2}, .name = "b", .address = "10.0.0.2:9000"};
  await([&] { return a->board().runs().known; });
  CHECK_FALSE(a->board().runs().latest);
  a->board().want(of_a);
  b->board().want(of_b);
  await([&] { return a->board().runs().latest && b->board().runs().latest; });
  CHECK(a->board().runs().latest == b->board().runs().latest);
  const StoredRun begun = *a->board().runs().latest;
  CHECK((begun == of_a || begun == of_b));
  CHECK_FALSE(a->board().runs().end);
  // What is told last of all arrives, too.
  b->board().note_end(begun.id, {.steps = 9, .all_left = true});
  b.reset();
  await([&] { return a->board().runs().end == RunEnd{.steps = 9, .all_left = true}; });
}

TEST_CASE("seed stores: a call that hangs is told of and holds up no end") {
  auto fake = std::make_shared<FakeSharedStore>();
  const RunKey key(make_key_pair());
  SeedStoreOptions options = quick();
  options.hangs = 1ms;
  options.waits = 1ms;
  std::weak_ptr<FakeSharedStore> left = fake;
  {
    SeedStore node([fake](const StopRequest&) { return fake; }, key,
                   {.name = "a", .incarnation = 1, .address = "10.0.0.1:9000"}, options);
    await([&] { return node.board().seeds().has_value(); });
    fake->set_hanging(true);
    CHECK(told(node, SiteEvent::Kind::store_silent)->text.find("takes longer") !=
          std::string::npos);
    fake->set_hanging(false);
    CHECK(told(node, SiteEvent::Kind::store_answers).has_value());
    fake->set_hanging(true);
    CHECK(told(node, SiteEvent::Kind::store_silent).has_value());
    node.board().leave();
    node.board().note_end({1, 1}, {.steps = 9, .all_left = true});
  }
  // The thread that was left behind has the store, and lets it go once the call ends.
  fake->set_hanging(false);
  fake.reset();
  await([&] { return left.expired(); });
}

TEST_CASE("seed stores: no end waits for a store that hangs as it opens or in its last call") {
  auto fake = std::make_shared<FakeSharedStore>();
  const std::weak_ptr<FakeSharedStore> left = fake;
  const RunKey key(make_key_pair());
  const sites::SeedLease own{.name = "a", .incarnation = 1, .address = "10.0.0.1:9000"};
  SeedStoreOptions options = quick();
  options.waits = 1ms;
  const auto opens = std::make_shared<std::promise<void>>();
  const auto stopped = std::make_shared<std::promise<bool>>();
  {
    SeedStore node(
        [open = opens->get_future().share(), stopped, fake](const StopRequest& stop) {
          open.wait();
          stopped->set_value(stop());
          return std::shared_ptr<SharedStore>(fake);
        },
        key, own, options);
  }
  opens->set_value();
  CHECK(stopped->get_future().get());  // which the thread still has, and no node
  CHECK(fake->looks() == 0);
  {
    options.look = 1h;  // after the first look only the end calls the store
    SeedStore node([fake](const StopRequest&) { return fake; }, key, own, options);
    await([&] { return node.board().seeds().has_value() && !fake->values().empty(); });
    fake->set_hanging(true);
  }
  CHECK(fake->values().size() == 1);  // the lease is left for others to find old
  fake->set_hanging(false);
  fake.reset();
  await([&] { return left.expired(); });
}

TEST_CASE("seed stores: a store that takes its time to open is waited for as one that is silent") {
  const auto fake = std::make_shared<FakeSharedStore>();
  const RunKey key(make_key_pair());
  const sites::SeedLease own{.name = "a", .incarnation = 1, .address = "10.0.0.1:9000"};
  SeedStoreOptions options = quick(1ms);
  options.waits = 1ms;
  const auto opens = std::make_shared<std::promise<void>>();
  const auto open = opens->get_future().share();
  SeedStore late(
      [open, fake](const StopRequest&) {
        open.wait();
        return std::shared_ptr<SharedStore>(fake);
      },
      key, own, options);
  SeedStore never(
      [open](const StopRequest&) -> std::shared_ptr<SharedStore> {
        open.wait();
        throw Error("seeds", "there is no such folder");
      },
      key, own, options);
  await([&] { return late.board().standing().fault() == Fault::deadline; });
  opens->set_value();
  await([&] { return late.board().seeds().has_value(); });
  CHECK(late.board().standing().ok());
  await([&] { return never.board().standing().fault() == Fault::unexpected; });
  CHECK(never.board().standing().message().find("no such folder") != std::string::npos);
}

TEST_CASE(
    "seed stores: a store that was emptied has the run and the lease again at the next look") {
  Fixture all;
  SeedStoreOptions options = quick();
  options.lease = 10h;  // leases alone would be looked at in hours
  const auto a = all.node(1, options);
  const StoredRun run{.number = 1, .id = {1, 1}, .name = "a", .address = "10.0.0.1:9000"};
  a->board().want(run);
  await([&] { return a->board().runs().latest == run; });
  a->board().note_run(run.id);
  a->board().hurry(false);
  const std::size_t looks = all.fake->looks();
  await([&] { return all.fake->looks() > looks + 100; });
  for (const auto& [key, value] : all.fake->values()) {
    CHECK(all.fake->remove(key).ok());
  }
  await([&] { return all.fake->values().size() == 2; });
  CHECK(all.fake->values().contains("nodes/runs/1"));
}

TEST_CASE("seed stores: what is refused is told") {
  Fixture all;
  REQUIRE(all.fake->set("nodes/seeds/5", std::vector<std::byte>(5'000)).ok());
  const auto a = all.node(1);
  const auto event = told(*a, SiteEvent::Kind::store_refused);
  CHECK(event->text.find("nodes/seeds/5") != std::string::npos);
  await([&] { return finds(*a, {}); });
  await(
      [&] { return !all.fake->values().contains("nodes/seeds/5"); });  // its place is free in time
}

}  // namespace sotto::test::seed_store_test
