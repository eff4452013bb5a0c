// What a node of an all-reduce whose nodes come and go waits for
// (sites/elastic/elastic_wait.h).
#include <sotto/sites/elastic/elastic_wait.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "sites/epochs/epoch_world.h"
#include "support/seed.h"

namespace sotto::test::elastic_wait_test {

namespace {

using Kind = ElasticWait::Kind;

/// A run of nodes n0, n1, …, that goes on.
EpochWorld running(std::size_t nodes, std::uint64_t seed) {
  EpochWorld::Options options{.seed = seed};
  options.most = nodes;
  for (std::size_t k = 0; k < nodes; ++k) {
    options.founders.push_back("n" + std::to_string(k));
  }
  EpochWorld world(options);
  for (const std::string& name : options.founders) {
    world.start(name);
  }
  world.run(EpochTime(20'000), [&] { return world.committed() >= 2; });
  REQUIRE(world.committed() >= 2);
  return world;
}

ElasticWait waiting_for(Kind kind) {
  ElasticWait wait;
  wait.kind = kind;
  wait.lost = {"b"};
  return wait;
}

}  // namespace

TEST_CASE("epoch waits: who waits for a run of a store says which and what else would do") {
  StoredRuns stored{.known = true};
  const auto words = [&](std::optional<std::chrono::milliseconds> again) {
    return words_of(wait_of(
        {.node = {{.up = 2, .least = 2}, false, true}, .again_after = again, .stored = stored}));
  };
  CHECK(words({}).find("names no run") != std::string::npos);
  stored.latest = StoredRun{.number = 3, .id = {1, 2}, .name = "n7", .address = "10.0.0.7:9"};
  CHECK(words({}).find("n7 at 10.0.0.7:9 has begun run 3") != std::string::npos);
  CHECK(words({}).find("another folder or prefix") != std::string::npos);
  CHECK(words(std::chrono::milliseconds(5'000)).find("for 5 s") != std::string::npos);
  stored.latest->name.clear();
  CHECK(words({}).find("entry is refused") != std::string::npos);
  stored = {};
  CHECK(words({}).find("has yet to answer") != std::string::npos);
}

TEST_CASE("epoch waits: a quorum is lost where those that are heard may not go on") {
  const std::uint64_t seed = drawn_seed();
  CAPTURE(seed);
  RandomStream draw({.seed = seed, .purpose = Purpose::faults});
  for (int play = 0; play < 40; ++play) {
    const std::size_t nodes = 2 + draw.below(7);
    EpochWorld world = running(nodes, seed + static_cast<std::uint64_t>(play));
    const EpochMember& member = *world.all()[draw.below(nodes)]->member;
    REQUIRE(member.members().size() == nodes);
    std::set<EpochNode> heard;
    std::vector<std::string> lost;
    for (const EpochNode& node : member.members()) {
      if (node == member.self() || draw.below(2) == 1) {
        heard.insert(node);
      } else {
        lost.push_back(node.name);
      }
    }
    const ElasticWait wait =
        wait_of({.member = &member,
                 .node = {{.up = heard.size(), .least = 1}},
                 .hears = [&](const auto& node) { return heard.contains(node); }});
    const bool goes_on = 2 * heard.size() > nodes ||
                         (2 * heard.size() == nodes && heard.contains(member.members().front()));
    CAPTURE(nodes);
    CAPTURE(heard.size());
    CHECK((wait.kind == Kind::quorum) == !goes_on);
    CHECK(wait.lost == lost);
    CHECK(wait.members == nodes);
    CHECK(wait.epoch == member.epoch());
    if (lost.empty()) {
      CHECK((wait.kind == Kind::none) == member.wants_gradient());
    }
  }
}

TEST_CASE(
    "epoch waits: below MIN more nodes are waited for, and before a run those of the roster") {
  EpochWorld world = running(2, 5);
  const EpochMember& member = *world.all()[0]->member;
  const auto all = [](const EpochNode&) { return true; };
  CHECK(wait_of({.member = &member, .node = {{.up = 2, .least = 3}}, .hears = all}).kind ==
        Kind::nodes);
  CHECK(wait_of({.member = nullptr, .node = {{.up = 1, .least = 3}}}).kind == Kind::nobody);
  CHECK(wait_of({.member = nullptr, .node = {{.up = 0, .least = 1}}}).kind == Kind::nobody);
  CHECK(wait_of({.member = nullptr, .node = {{.up = 1, .least = 3}}, .refused = 7}).kind ==
        Kind::key);
  CHECK(wait_of({.member = nullptr, .node = {{.up = 2, .least = 3}}, .refused = 7}).kind ==
        Kind::nodes);
  CHECK(wait_of({.member = nullptr, .node = {{.up = 3, .least = 3}}}).kind == Kind::admission);
  // One that others know, and that is no member yet.
  EpochWorld::Process& late = world.start("late");
  CHECK(wait_of({.member = late.member.get(), .node = {{.up = 3, .least = 2}}}).kind ==
        Kind::admission);
}

TEST_CASE("epoch waits: a node that leaves, or has left, waits for no step") {
  EpochWorld world = running(3, 8);
  const auto nodes = world.all();
  const auto member = std::ranges::find_if(nodes, [](const EpochWorld::Process* node) {
    return node->member->standing() == EpochStanding::member;
  });
  REQUIRE(member != nodes.end());
  const EpochWorld::Process& process = **member;
  const EpochWorld::Key key{process.name, process.incarnation};
  int out = 0;  // messages of it, once it is out
  world.lose(
      [&](const EpochWorld::Process& from, const std::string& /*to*/, const auto& /*message*/) {
        if (&from == &process && from.member->standing() != EpochStanding::member) {
          ++out;
          CHECK(wait_of({.member = from.member.get(), .node = {{.up = 1, .least = 1}}}).kind ==
                Kind::none);
        }
        return false;
      });
  world.leave(**member);
  world.run(world.now() + EpochTime(20'000), [&] { return !world.runs(key); });
  CHECK_FALSE(world.runs(key));
  CHECK(out > 0);
}

TEST_CASE("epoch waits: each kind has a name and words of its own") {
  std::set<std::string> names;
  std::set<std::string> words;
  for (const Kind kind : elastic_wait_kinds()) {
    names.insert(std::string(name_of(kind)));
    words.insert(words_of(waiting_for(kind)));
  }
  CHECK(names.size() == elastic_wait_kinds().size());
  CHECK(words.size() == elastic_wait_kinds().size());
  CHECK(!names.contains(""));
  CHECK(name_of(Kind::none).empty());
}

}  // namespace sotto::test::elastic_wait_test
