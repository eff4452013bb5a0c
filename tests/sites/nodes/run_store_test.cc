// What nodes keep in a store: leases and runs that others may have damaged or forged, and that of
// those that begin a run at once one does.
#include <sotto/sites/nodes/stores/node_store.h>

#include <algorithm>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>
#include <sotto/comm/trust/sealed_message.h>

#include "support/fake_shared_store.h"
#include "support/scratch.h"
#include "support/seed.h"

namespace sotto::test::run_store_test {

namespace {

Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

StoredRun run_of(std::uint64_t number, const std::string& name, std::uint64_t id) {
  return {.number = number, .id = {id, 1}, .name = name, .address = "10.0.0.1:9000", .step = 5};
}

sites::SeedLease lease_of(const std::string& name, std::uint64_t incarnation) {
  return {.name = name, .incarnation = incarnation, .address = "10.0.0.1:9000"};
}

/// The first run of a store, as each of those sees it that want to begin one at once.
std::vector<StoredRun> founded_at_once(const std::function<std::shared_ptr<SharedStore>()>& open,
                                       const RunKey& key) {
  constexpr std::size_t kFounders = 6;
  std::vector<StoredRun> seen(kFounders);
  std::latch all(kFounders);
  std::vector<std::thread> founders;
  for (std::size_t k = 0; k < kFounders; ++k) {
    founders.emplace_back([&, k] {
      NodeStore store(open(), key);
      all.arrive_and_wait();
      const auto begun = store.runs.claim(run_of(1, "n" + std::to_string(k), 100 + k), soon());
      if (begun) {
        seen[k] = *begun;
      }
    });
  }
  for (std::thread& founder : founders) {
    founder.join();
  }
  return seen;
}

}  // namespace

TEST_CASE("run stores: an entry of a run comes back as it was and others are refused") {
  const StoredRun run = run_of(3, "a", 7);
  const std::vector<std::byte> bytes = encode(run);
  CHECK(parse_stored_run(bytes).value() == run);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK_FALSE(parse_stored_run(std::span(bytes).first(size)).ok());
  }
  CHECK_FALSE(parse_stored_run(encode(run_of(3, "", 7))).ok());
  CHECK_FALSE(parse_stored_run(encode(run_of(3, "a\nb", 7))).ok());
  StoredRun largest = run_of(3, std::string(sites::kMostRosterName, 'a'), 7);
  largest.address = std::string(sites::kMostRosterAddress, '1');
  CHECK(encode(largest).size() <= kMostStoredRunBytes);
}

TEST_CASE("run stores: of several that begin a run at once one does and all see which") {
  const RunKey key(make_key_pair());
  const Scratch folder;
  for (const bool in_files : {false, true}) {
    for (int play = 0; play < (in_files ? 40 : 10); ++play) {
      const auto fake = std::make_shared<FakeSharedStore>();
      const std::string url = "file:" + (folder.path() / std::to_string(play)).string();
      const auto seen = founded_at_once(
          [&]() -> std::shared_ptr<SharedStore> {
            return in_files ? make_shared_store("seeds", url) : fake;
          },
          key);
      CHECK(seen.front().number == 1);
      CHECK(std::ranges::adjacent_find(seen, std::not_equal_to()) == seen.end());
    }
  }
}

TEST_CASE("run stores: the next run is begun once and from the number that was seen") {
  const auto fake = std::make_shared<FakeSharedStore>();
  const RunKey key(make_key_pair());
  NodeStore a(fake, key);
  NodeStore b(fake, key);
  CHECK_FALSE(a.runs.latest(soon()).value());
  CHECK(a.runs.claim(run_of(1, "a", 1), soon()).value() == run_of(1, "a", 1));
  CHECK(b.runs.latest(soon()).value() == run_of(1, "a", 1));
  CHECK(b.runs.claim(run_of(1, "b", 2), soon()).value() == run_of(1, "a", 1));
  CHECK(b.runs.claim(run_of(2, "b", 2), soon()).value() == run_of(2, "b", 2));
  CHECK(a.runs.claim(run_of(2, "a", 3), soon()).value() == run_of(2, "b", 2));
  CHECK(a.runs.latest(soon()).value() == run_of(2, "b", 2));
  // The end of a run is that of its number, also where another one was begun since.
  CHECK(a.runs.note_end({1, 1}, {.steps = 40, .all_left = true}, soon()).ok());
  CHECK_FALSE(b.runs.end_of({.number = 2, .id = {2, 2}}, soon()).value());
  CHECK(b.runs.end_of({.number = 1, .id = {1, 1}}, soon()).value() ==
        RunEnd{.steps = 40, .all_left = true});
  CHECK(b.runs.note_end({1, 1}, {.steps = 40, .all_left = false}, soon()).ok());  // is known better
  CHECK(a.runs.end_of({.number = 1, .id = {1, 1}}, soon()).value() ==
        RunEnd{.steps = 40, .all_left = true});
  // The end of another run under that number says nothing of this one.
  CHECK_FALSE(b.runs.end_of({.number = 1, .id = {7, 7}}, soon()).value());
  CHECK(b.entries.take_refused().size() == 1);
  CHECK(a.runs.note_end({9, 9}, {.steps = 40}, soon()).ok());  // nobody has begun it here
  CHECK(fake->values().size() == 3);
  CHECK(b.runs.claim(run_of(kMostStoredRuns + 1, "b", 2), soon()).value().number == 0);
  CHECK(b.entries.take_refused().size() == 1);
}

TEST_CASE("run stores: a store that was emptied gets the run back from those that are in it") {
  const auto fake = std::make_shared<FakeSharedStore>();
  const RunKey key(make_key_pair());
  NodeStore member(fake, key);
  NodeStore other(fake, key);
  for (const std::uint64_t number : {1U, 2U, 3U}) {
    REQUIRE(member.runs.claim(run_of(number, "a", number), soon()).ok());
  }
  const StoredRunId own = {3, 1};
  CHECK(member.runs.latest(soon(), own).value() == run_of(3, "a", 3));
  CHECK(other.runs.latest(soon()).value() == run_of(3, "a", 3));
  for (const auto& [at, value] : fake->values()) {
    REQUIRE(fake->remove(at).ok());
  }
  // That may have been wanted: those that are in no run take the store as it is.
  CHECK_FALSE(other.runs.latest(soon()).value());
  CHECK_FALSE(other.runs.latest(soon(), StoredRunId{9, 9}).value());
  CHECK(member.runs.latest(soon(), own).value() == run_of(3, "a", 3));
  CHECK(other.runs.latest(soon()).value() == run_of(3, "a", 3));
  CHECK(NodeStore(fake, key).runs.latest(soon()).value() == run_of(3, "a", 3));
}

TEST_CASE("run stores: a run that is lost alone hides none and comes back") {
  const auto fake = std::make_shared<FakeSharedStore>();
  const RunKey key(make_key_pair());
  NodeStore member(fake, key);
  constexpr std::uint64_t kRuns = 9;
  for (std::uint64_t number = 1; number <= kRuns; ++number) {
    REQUIRE(member.runs.claim(run_of(number, "a", number), soon()).ok());
  }
  const StoredRunId own = {kRuns, 1};
  CHECK(member.runs.latest(soon(), own).value() == run_of(kRuns, "a", kRuns));
  CHECK_FALSE(member.runs.take_restored());
  const auto whole = fake->values();
  for (std::uint64_t lost = 1; lost <= kRuns; ++lost) {
    CAPTURE(lost);
    REQUIRE(fake->remove("nodes/runs/" + std::to_string(lost)).ok());
    if (lost < kRuns) {
      // One that comes now begins no run beside the latest.
      CHECK(NodeStore(fake, key).runs.latest(soon()).value() == run_of(kRuns, "a", kRuns));
    }
    for (std::uint64_t looks = 0; looks < kRuns; ++looks) {
      CHECK(member.runs.latest(soon(), own).value() == run_of(kRuns, "a", kRuns));
    }
    CHECK(member.runs.take_restored());
    CHECK_FALSE(member.runs.take_restored());
    for (std::uint64_t number = 1; number <= kRuns; ++number) {
      // Each as it was, whoever put it there.
      CHECK(NodeStore(fake, key).runs.claim(run_of(number, "b", 77), soon()).value() ==
            run_of(number, "a", number));
    }
  }
  CHECK(fake->values().size() == whole.size());
}

TEST_CASE("run stores: an end is not overwritten by one that was seen before it") {
  const auto fake = std::make_shared<FakeSharedStore>();
  const RunKey key(make_key_pair());
  NodeStore a(fake, key);
  NodeStore b(fake, key);
  const StoredRun run = run_of(1, "a", 1);
  REQUIRE(a.runs.claim(run, soon()).ok());
  // Both have read that there is no end yet, and the one that knows more is first.
  fake->before_claim(
      [&] { CHECK(b.runs.note_end(run.id, {.steps = 8, .all_left = true}, soon()).ok()); });
  CHECK(a.runs.note_end(run.id, {.steps = 8, .all_left = false}, soon()).ok());
  CHECK(a.runs.end_of(run, soon()).value() == RunEnd{.steps = 8, .all_left = true});
  CHECK(fake->values().size() == 2);
  CHECK(fake->remove("nodes/runs/1/end").ok());
  // The other one is first.
  fake->before_claim([&] { CHECK(b.runs.note_end(run.id, {.steps = 6}, soon()).ok()); });
  CHECK(a.runs.note_end(run.id, {.steps = 8, .all_left = true}, soon()).ok());
  CHECK(b.runs.end_of(run, soon()).value() == RunEnd{.steps = 8, .all_left = true});
  CHECK(fake->values().contains("nodes/runs/1/end/1"));
  // What is no end takes a place, and hides nothing.
  REQUIRE(fake->set("nodes/runs/1/end", std::vector<std::byte>(40)).ok());
  CHECK(b.runs.end_of(run, soon()).value() == RunEnd{.steps = 8, .all_left = true});
  CHECK(b.entries.take_refused().size() == 1);
  REQUIRE(fake->remove("nodes/runs/1/end/1").ok());
  CHECK(b.runs.note_end(run.id, {.steps = 9}, soon()).ok());
  CHECK(a.runs.end_of(run, soon()).value() == RunEnd{.steps = 9});
}

TEST_CASE("run stores: damaged and forged entries are refused by name once each") {
  const auto fake = std::make_shared<FakeSharedStore>();
  const RunKey key(make_key_pair());
  const RunKey other(make_key_pair());
  NodeStore store(fake, key);
  REQUIRE(NodeStore(fake, other).leases.claim(0, lease_of("stranger", 3), soon()).value());
  REQUIRE(fake->set("nodes/seeds/1", std::vector<std::byte>(1 << 20)).ok());
  REQUIRE(fake->set("nodes/seeds/2", std::vector<std::byte>(3)).ok());
  const PrivateKey seal = key.derived("sotto leases in a store");
  REQUIRE(fake->set("nodes/seeds/3", seal_message(std::vector<std::byte>(40), seal)).ok());
  REQUIRE(store.leases.claim(4, lease_of("b", 2), soon()).value());
  const auto places = store.leases.places(soon()).value();
  for (std::size_t k = 0; k < places.size(); ++k) {
    CHECK(places[k].lease.has_value() == (k == 4));
    CHECK((places[k].mark != 0) == (k <= 4));
  }
  std::vector<std::string> refused = store.entries.take_refused();
  REQUIRE(refused.size() == 4);
  CHECK(refused[0].find("'nodes/seeds/0'") != std::string::npos);
  CHECK(refused[0].find("key does not open it") != std::string::npos);
  CHECK(store.leases.places(soon()).ok());
  CHECK(store.entries.take_refused().empty());
  CHECK_FALSE(store.leases.claim(1, lease_of("a", 1), soon()).value());
  // What has changed since is left alone, and what has not is removed.
  CHECK(store.leases.clear(4, places[4].mark + 1, soon()).ok());
  CHECK(store.leases.clear(1, places[1].mark, soon()).ok());
  CHECK_FALSE(fake->values().contains("nodes/seeds/1"));
  CHECK(store.leases.leave(0, lease_of("a", 1), soon()).ok());  // another's
  CHECK(fake->values().size() == 4);
  CHECK(store.leases.leave(4, lease_of("b", 2), soon()).ok());
  CHECK_FALSE(fake->values().contains("nodes/seeds/4"));
}

TEST_CASE("run stores: a run whose entry is refused was begun and by nobody knows whom") {
  const auto fake = std::make_shared<FakeSharedStore>();
  const RunKey key(make_key_pair());
  const PrivateKey seal = key.derived("sotto runs in a store");
  NodeStore store(fake, key);
  SUBCASE("garbage") { REQUIRE(fake->set("nodes/runs/1", std::vector<std::byte>(100)).ok()); }
  SUBCASE("too long") { REQUIRE(fake->set("nodes/runs/1", std::vector<std::byte>(1 << 20)).ok()); }
  SUBCASE("an entry of another number") {
    REQUIRE(fake->set("nodes/runs/1", seal_message(encode(run_of(2, "a", 1)), seal)).ok());
  }
  CHECK(store.runs.latest(soon()).value() == StoredRun{.number = 1});
  CHECK(store.runs.claim(run_of(1, "a", 1), soon()).value() == StoredRun{.number = 1});
  CHECK(store.entries.take_refused().size() == 1);
  CHECK(store.runs.claim(run_of(2, "a", 1), soon()).value() == run_of(2, "a", 1));
  REQUIRE(fake->set("nodes/runs/2/end", std::vector<std::byte>(40)).ok());
  CHECK_FALSE(store.runs.end_of({.number = 2, .id = {2, 2}}, soon()).value());
  CHECK(store.entries.take_refused().size() == 1);
}

TEST_CASE("run stores: random bytes in a store are no entries and end nothing") {
  const std::uint64_t seed = drawn_seed();
  CAPTURE(seed);
  RandomStream draw({.seed = seed, .purpose = Purpose::faults});
  const auto fake = std::make_shared<FakeSharedStore>();
  const RunKey key(make_key_pair());
  NodeStore store(fake, key);
  for (int play = 0; play < 200; ++play) {
    std::vector<std::byte> bytes(draw.below(600));
    for (std::byte& one : bytes) {
      one = static_cast<std::byte>(draw.below(256));
    }
    // Half of them by somebody that has the key.
    const bool sealed = draw.below(2) == 0;
    const std::string purpose =
        draw.below(2) == 0 ? "sotto leases in a store" : "sotto runs in a store";
    const std::string place =
        "nodes/seeds/" + std::to_string(draw.below(sites::SeedLeases::kPlaces));
    const std::string at = draw.below(2) == 0 ? place : "nodes/runs/1";
    REQUIRE(fake->set(at, sealed ? seal_message(bytes, key.derived(purpose)) : bytes).ok());
    const std::vector<sites::SeedPlace> places = store.leases.places(soon()).value();
    for (const sites::SeedPlace& one : places) {
      CHECK_FALSE(one.lease);
    }
    const auto latest = store.runs.latest(soon()).value();
    CHECK((!latest || latest->name.empty()));
  }
}

TEST_CASE("run stores: a store that does not answer is a fault and no entry") {
  const auto fake = std::make_shared<FakeSharedStore>();
  NodeStore store(fake, RunKey::open());
  fake->set_gone(true);
  CHECK(store.leases.places(soon()).status().fault() == Fault::io);
  CHECK(store.runs.latest(soon()).status().fault() == Fault::io);
  CHECK(store.runs.claim(run_of(1, "a", 1), soon()).status().fault() == Fault::io);
  CHECK(store.leases.claim(0, lease_of("a", 1), soon()).status().fault() == Fault::io);
  CHECK(store.runs.note_end({1, 1}, {}, soon()).fault() == Fault::io);
  CHECK(store.entries.take_refused().empty());
}

}  // namespace sotto::test::run_store_test
