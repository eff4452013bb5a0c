// What may go wrong in an all-reduce whose nodes come and go, one story each; and what a rule is
// for that random schedules seldom need.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "sites/epochs/epoch_world.h"
#include "support/seed.h"

namespace sotto::test::epoch_scenarios_test {

using namespace sotto::sites;

namespace {

constexpr EpochTime kLong{20'000};

using Process = EpochWorld::Process;

template <typename Body>
bool is(const EpochMessage& message) {
  return std::holds_alternative<Body>(message.body);
}

/// A run of these founders that has taken two steps.
EpochWorld running(std::vector<std::string> names, const EpochRules& rules = {},
                   std::optional<EpochTime> grace = {}, std::size_t join_memory = 1 << 16) {
  EpochWorld world(
      {.seed = 5, .grace = grace, .rules = rules, .founders = names, .join_memory = join_memory});
  for (const std::string& name : names) {
    world.start(name);
  }
  world.run(kLong, [&] { return world.committed() >= 2; });
  REQUIRE(world.committed() >= 2);
  return world;
}

/// Whether all that run are members of one epoch, and go on together.
bool goes_on(EpochWorld& world, EpochTime within = kLong) {
  const Round before = world.committed();
  bool all = false;
  world.run(within, [&] {
    all = world.committed() >= before + 3;
    for (const Process* process : world.all()) {
      all = all && process->member->standing() == EpochStanding::member &&
            process->member->members().size() == world.all().size() &&
            process->member->step() + 1 >= world.committed();
    }
    return all;
  });
  return all;
}

bool breaks(const std::function<void()>& story) {
  try {
    story();
  } catch (const Violated&) {
    return true;
  }
  return false;
}

void isolate(EpochWorld& world, Process& one) {
  for (Process* other : world.all()) {
    if (other != &one) {
      world.block(one, *other);
      world.block(*other, one);
      world.suspect(*other, one);
      world.suspect(one, *other);
    }
  }
}

/// Only `a` learns that all have the mean of a step, and applies it.
void apply_at_a_alone(EpochWorld& world) {
  world.lose([](const Process&, const std::string& to, const EpochMessage& message) {
    return is<HaveMessage>(message) && to != "a";
  });
  const Round before = world.committed();
  world.run(EpochTime(3'000), [&] { return world.at("a").member->step() > before; });
  REQUIRE(world.at("a").member->step() == before + 1);
  REQUIRE(world.at("b").member->step() == before);
}

}  // namespace

TEST_CASE("epochs: last apply, first death: one applies, dies, and nobody heard that it did") {
  EpochWorld world = running({"a", "b", "c"});
  apply_at_a_alone(world);
  world.lose({});
  world.kill(world.at("a"), false);
  for (auto& [ends, queue] : world.queues()) {
    queue.clear();
  }
  CHECK(goes_on(world));
  CHECK(world.carried() == 1);
}

TEST_CASE("epochs: a proposer dies between its accepts and its decision") {
  EpochWorld world = running({"a", "b", "c", "d"});
  world.lose([](const Process& from, const std::string&, const EpochMessage& message) {
    return from.name == "a" && is<DecideMessage>(message);
  });
  world.suspect(world.at("a"), world.at("c"));
  world.run(kLong, [&] { return world.at("a").member->epoch() == 2; });
  REQUIRE(world.at("a").member->epoch() == 2);
  REQUIRE(world.at("b").member->epoch() == 1);
  world.kill(world.at("a"), false);
  CHECK(goes_on(world));
}

TEST_CASE("epochs: two propose at once, and one value is decided") {
  EpochWorld world = running({"a", "b", "c", "d"});
  for (const char* who : {"a", "b", "c", "d"}) {
    for (const char* whom : {"a", "b", "c", "d"}) {
      if (std::string(who) != whom) {
        world.suspect(world.at(who), world.at(whom));  // each believes that it is alone
      }
    }
  }
  world.run(EpochTime(4'000));
  world.suspect_exactly();
  CHECK(goes_on(world, EpochTime(60'000)));
}

TEST_CASE("epochs: the owner of a chunk dies after half of its means") {
  EpochWorld world = running({"a", "b", "c"});
  world.lose([](const Process& from, const std::string& to, const EpochMessage& message) {
    return from.name == "a" && to == "c" && is<PartMessage>(message);
  });
  world.run(EpochTime(1'500));
  world.kill(world.at("a"), false);
  world.lose({});
  CHECK(goes_on(world));
}

TEST_CASE("epochs: a straggler is left out of one chunk only") {
  EpochWorld world = running({"a", "b", "c"}, {}, EpochTime(300));
  world.lose([](const Process& from, const std::string& to, const EpochMessage& message) {
    return from.name == "c" && to == "a" && is<ChunkMessage>(message);
  });
  const Round step = world.committed() + 2;
  world.run(kLong, [&] { return world.at("a").member->step() >= step; });
  const StepMean* mean = world.at("a").member->committed(step);
  REQUIRE(mean != nullptr);
  CHECK(mean->parts[0].who.size() == 2);
  CHECK(mean->parts[1].who.size() == 3);
}

TEST_CASE("epochs: of the last two the elder goes on alone, and the younger never") {
  for (const bool elder_dies : {false, true}) {
    EpochWorld world = running({"a", "b"});
    world.kill(world.at(elder_dies ? "a" : "b"), false);
    CHECK(goes_on(world) == !elder_dies);
  }
}

TEST_CASE("epochs: of two halves that with the eldest goes on, and takes the other in again") {
  EpochWorld world = running({"a", "b", "c", "d"});
  for (const char* left : {"a", "b"}) {
    for (const char* right : {"c", "d"}) {
      world.block(world.at(left), world.at(right));
      world.block(world.at(right), world.at(left));
      world.suspect(world.at(left), world.at(right));
      world.suspect(world.at(right), world.at(left));
    }
  }
  const Round before = world.committed();
  world.run(kLong);
  CHECK(world.at("a").member->step() > before + 3);
  CHECK(world.at("b").member->step() > before + 3);
  CHECK(world.at("c").member->step() <= before + 1);
  CHECK(world.at("d").member->step() <= before + 1);
  world.unblock();
  world.suspect_exactly();
  CHECK(goes_on(world, EpochTime(60'000)));
}

TEST_CASE("epochs: a newcomer is not taken in while a mean is carried, which it does not have") {
  const auto story = [](const EpochRules& rules) {
    EpochWorld world = running({"a", "b", "c"}, rules);
    Process& newcomer = world.start("p");
    world.run(EpochTime(6'000));  // it replays, and waits for the next planned change
    REQUIRE(world.at("a").member->epoch() == 1);
    world.block(world.at("a"), newcomer);
    apply_at_a_alone(world);
    // b and c have the mean, p does not, and nobody gives it p.
    isolate(world, world.at("a"));
    world.lose([](const Process&, const std::string& to, const EpochMessage& message) {
      return to == "p" && is<PartMessage>(message);
    });
    world.run(EpochTime(3'000), [&] { return world.at("b").member->epoch() == 2; });
    // The next change goes by what p and b say.
    world.suspect(world.at("b"), world.at("c"));
    world.run(EpochTime(5'000));
    world.lose({});
    world.run(kLong);
    REQUIRE(world.carried() > 0);
  };
  story({});
  CHECK(breaks([&] { story({.admits_unless_carried = false}); }));
}

TEST_CASE("epochs: an old decision reaches a newcomer that has gone on") {
  const auto story = [](const EpochRules& rules) {
    EpochWorld world = running({"a", "b", "c"}, rules);
    world.start("p");
    std::vector<std::byte> old;
    world.lose([&](const Process&, const std::string& to, const EpochMessage& message) {
      if (to != "p" || !is<DecideMessage>(message)) {
        return false;
      }
      old = old.empty() ? encode(message) : old;
      return true;
    });
    world.run(EpochTime(60'000), [&] { return !old.empty(); });
    REQUIRE(!old.empty());
    const Round base = world.at("a").member->base();
    for (const char* member : {"a", "b", "c"}) {
      world.suspect(world.at(member), world.at("p"));
    }
    world.run(EpochTime(3'000));  // without p
    world.suspect_exactly();
    world.run(EpochTime(3'000));
    REQUIRE(world.at("p").member->step() > base);
    REQUIRE(world.at("p").member->standing() == EpochStanding::joining);
    Process& a = world.at("a");
    Process& p = world.at("p");
    world.queues()[{{a.name, a.incarnation}, {p.name, p.incarnation}}].push_front(old);
    world.settle();
    world.lose({});
    CHECK(goes_on(world, EpochTime(60'000)));
  };
  story({});
  CHECK(breaks([&] { story({.enters_at_base = false}); }));
}

TEST_CASE("epochs: the leaver who knew alone stays until the others know") {
  const auto story = [](const EpochRules& rules) {
    EpochWorld world = running({"a", "b"}, rules);
    world.lose([](const Process& from, const std::string&, const EpochMessage& message) {
      return from.name == "a" && is<DecideMessage>(message);
    });
    world.leave(world.at("a"));
    world.run(EpochTime(2'000));
    world.lose({});
    return goes_on(world) && world.find("a") == nullptr;
  };
  CHECK(story({}));
  CHECK_FALSE(story({.leaver_waits = false}));
}

TEST_CASE("epochs: the leaver who knew alone does not go while it may suspect the other wrongly") {
  const auto story = [](const EpochRules& rules, bool dies) {
    EpochWorld world = running({"a", "b"}, rules);
    Process& elder = world.at("a");
    Process& other = world.at("b");
    world.lose([](const Process& from, const std::string&, const EpochMessage& message) {
      return from.name == "a" && is<DecideMessage>(message);
    });
    world.leave(elder);
    world.run(EpochTime(1'000), [&] { return elder.member->standing() != EpochStanding::member; });
    world.suspect(elder, other);
    world.run(EpochTime(2'000));
    if (dies) {
      world.kill(other, false);
    } else {
      world.suspect_exactly();
    }
    world.lose({});
    return (dies || goes_on(world)) && (world.run(EpochTime(2'000)), world.find("a") == nullptr);
  };
  CHECK(story({}, false));
  CHECK(story({}, true));
  CHECK_FALSE(story({.leaver_waits_for_suspects = false}, false));
}

TEST_CASE("epochs: a run is not over while one that is suspected for a moment may go on") {
  const std::uint64_t seed = drawn_seed();
  CAPTURE(seed);
  RandomStream draw({.seed = seed, .purpose = Purpose::faults});
  const auto story = [&](const EpochRules& rules, std::vector<std::string> names, bool dies) {
    const std::size_t stays = draw.below(names.size());
    EpochWorld world = running(names, rules);
    // Nothing passes between the one that stays and the others, for up to half of what they wait.
    isolate(world, world.at(names[stays]));
    for (std::size_t k = 0; k < names.size(); ++k) {
      if (k != stays) {
        world.leave(world.at(names[k]));
      }
    }
    world.run(EpochTime(200 * (1 + static_cast<int>(draw.below(2)))));
    if (dies) {
      world.kill(world.at(names[stays]), false);
      world.run(kLong);
      return world.all().empty();
    }
    world.unblock();
    world.suspect_exactly();
    return goes_on(world) && world.all().size() == 1;
  };
  for (int play = 0; play < 10; ++play) {
    CHECK(story({}, {"a", "b", "c"}, false));
    CHECK(story({}, {"a", "b", "c", "d"}, false));
    CHECK(story({}, {"a", "b", "c"}, true));
  }
  CHECK_FALSE(story({.leaver_waits_for_suspects = false}, {"a", "b", "c"}, false));
}

TEST_CASE("epochs: a leaver that is told twice stays until the others know") {
  EpochWorld world = running({"a", "b"});
  world.lose([](const Process& from, const std::string&, const EpochMessage& message) {
    return from.name == "a" && is<DecideMessage>(message);
  });
  world.leave(world.at("a"));
  world.run(EpochTime(2'000));
  REQUIRE(world.at("a").member->standing() == EpochStanding::leaving);
  world.leave(world.at("a"));
  CHECK(world.at("a").member->standing() == EpochStanding::leaving);
  world.lose({});
  CHECK(goes_on(world));
}

TEST_CASE("epochs: a leaver serves the mean that is carried into an epoch without it") {
  EpochWorld world = running({"a", "b", "c"});
  apply_at_a_alone(world);
  world.lose({});
  world.leave(world.at("a"));
  world.leave(world.at("b"));
  CHECK(goes_on(world));
  CHECK(world.all().size() == 1);
}

TEST_CASE("epochs: who was away while all others were replaced begins anew") {
  const auto story = [](const EpochRules& rules) {
    EpochWorld world = running({"a", "b", "c"}, rules);
    Process& away = world.at("b");
    isolate(world, away);
    Process& newcomer = world.start("p");
    for (Process* process : {&newcomer, &world.at("a"), &world.at("c")}) {
      world.block(*process, away);
      world.block(away, *process);
      world.suspect(*process, away);
    }
    world.run(EpochTime(60'000),
              [&] { return newcomer.member->standing() == EpochStanding::member; });
    world.leave(world.at("a"));
    world.leave(world.at("c"));
    world.run(EpochTime(10'000), [&] { return world.all().size() == 2; });
    REQUIRE(world.all().size() == 2);
    for (auto& [ends, queue] : world.queues()) {
      queue.clear();
    }
    world.unblock();
    world.suspect_exactly();
    return goes_on(world, EpochTime(60'000));
  };
  CHECK(story({}));
  CHECK_FALSE(story({.begins_anew = false}));
}

TEST_CASE("epochs: seeds that are born again found no second run") {
  EpochWorld world = running({"a", "b", "c"});
  const auto first = world.decided().at(0);
  for (const char* name : {"a", "b", "c"}) {
    world.kill(world.at(name), false);
  }
  for (const char* name : {"a", "b", "c"}) {
    world.start(name);
  }
  const Round before = world.committed();
  world.run(kLong);
  CHECK(world.committed() == before);
  CHECK(world.decided().at(0) == first);
}

TEST_CASE("epochs: who hears of a new epoch late is told its step at once, and none waits") {
  EpochWorld world = running({"a", "b", "c", "d"});
  world.kill(world.at("d"), false);
  // c hears of the epoch from b alone, which has said its part of the step by then.
  world.block(world.at("a"), world.at("c"));
  const auto computed = [&] {
    for (Process* process : world.all()) {
      world.offer(*process);
    }
    world.settle();
  };
  for (int k = 0; k < 20 && world.at("b").member->epoch() == 1; ++k) {
    world.pass(EpochTime(50));
    world.tick(world.at("a"));
    computed();
  }
  REQUIRE(world.at("b").member->epoch() == 2);
  const Round before = world.at("b").member->step();
  world.unblock();
  computed();
  computed();
  for (const Process* process :
       world.all()) {  // no time has passed, so that nothing was said again
    CHECK(process->member->epoch() == 2);
    CHECK(process->member->step() > before);
  }
}

TEST_CASE("epochs: who lacks the mean that is carried asks the first that says it has it") {
  EpochWorld world = running({"a", "b", "c", "d", "e"});
  world.lose([](const Process& from, const std::string& to, const EpochMessage& message) {
    const auto* const part = std::get_if<PartMessage>(&message.body);
    return (to == "e" && part != nullptr && part->standing == PartMessage::Standing::made) ||
           (from.name == "e" && is<PromiseMessage>(message));
  });
  world.run(EpochTime(1'000));
  const Round before = world.at("e").member->step();
  world.kill(world.at("d"), false);
  for (int k = 0; k < 100 && world.at("e").member->epoch() == 1; ++k) {
    world.pass(EpochTime(20));
    for (Process* process : world.all()) {
      world.tick(*process);
    }
    world.settle();
  }
  CHECK(world.carried() == 1);
  CHECK(world.at("e").member->epoch() == 2);
  CHECK(world.at("e").member->step() == before + 1);  // no time has passed since it entered
}

TEST_CASE("epochs: with fewer than MIN members no step begins") {
  EpochWorld world({.seed = 5, .least = 3, .founders = {"a", "b"}});
  world.start("a");
  world.start("b");
  world.run(EpochTime(5'000));
  CHECK(world.at("a").member->epoch() == 1);
  CHECK(world.committed() == 0);
  world.start("p");
  CHECK(goes_on(world));
}

TEST_CASE("epochs: a newcomer that is many steps behind a fast run is taken in") {
  EpochWorld world = running({"a", "b", "c"});
  Process& newcomer = world.start("p");
  // The members make 20 steps in the time in which a message to or from the newcomer comes.
  Round behind = 0;
  for (int k = 0; k < 600 && newcomer.member->standing() != EpochStanding::member; ++k) {
    world.pass(EpochTime(50));
    for (int step = 0; step < 20; ++step) {
      for (Process* process : world.all()) {
        world.offer(*process);
      }
      world.settle("p");
    }
    behind = std::max(behind, newcomer.member->step() > 0 && !world.at("a").member->frozen()
                                  ? world.at("a").member->step() - newcomer.member->step()
                                  : Round{0});
    for (Process* process : world.all()) {
      world.tick(*process);
    }
    world.deliver_once("p");
  }
  CHECK(behind > EpochDonor::kNear);
  CHECK(newcomer.member->standing() == EpochStanding::member);
  CHECK(goes_on(world));
}

/// In the time in which a message to or from a newcomer comes, which asks for 128 means at most,
/// the members make 150 steps, as far as they do not wait.
void make_many_steps(EpochWorld& world) {
  world.pass(EpochTime(50));
  for (int step = 0; step < 150; ++step) {
    for (Process* process : world.all()) {
      world.offer(*process);
    }
    world.settle("p");
  }
  for (Process* process : world.all()) {
    world.tick(*process);
  }
}

TEST_CASE("epochs: members wait for a newcomer that replays more slowly than they step") {
  EpochWorld world = running({"a", "b", "c"}, {}, {}, 1 << 24);
  Process& newcomer = world.start("p");
  bool waited = false;
  for (int k = 0; k < 600 && newcomer.member->standing() != EpochStanding::member; ++k) {
    make_many_steps(world);
    waited = waited || world.at("a").member->waits_for_newcomer();
    world.deliver_once("p");
  }
  CHECK(waited);
  CHECK(newcomer.member->standing() == EpochStanding::member);
  CHECK(goes_on(world));
}

TEST_CASE("epochs: a run waits for no newcomer that stands still") {
  EpochWorld world = running({"a", "b"}, {}, {}, 1 << 24);
  world.start("p");
  for (int k = 0; k < 600 && !world.at("a").member->waits_for_newcomer(); ++k) {
    make_many_steps(world);
    world.deliver_once("p");
  }
  REQUIRE(world.at("a").member->waits_for_newcomer());
  // From now on nothing reaches the newcomer, and it says nothing.
  const Round then = world.at("a").member->step();
  for (int k = 0; k < 60; ++k) {  // 3 seconds
    make_many_steps(world);
  }
  CHECK(world.at("a").member->step() > then + 150);
}

TEST_CASE("epochs: parameters that are kept wait for their means, and for a newcomer's model") {
  EpochWorld world = running({"a", "b"});
  EpochMember& a = *world.at("a").member;
  const auto copy = [&a] {
    return std::vector<float>(a.parameters().begin(), a.parameters().end());
  };
  world.offer(world.at("a"));
  a.keep_parameters(true);
  const Round before = a.applied();
  const std::vector<float> x = copy();
  world.run(kLong, [&] { return a.step() > before; });
  CHECK(a.step() == before + 1);
  CHECK(a.applied() == before);
  CHECK(!a.wants_gradient());
  CHECK(copy() == x);
  a.keep_parameters(false);
  CHECK(a.applied() == before + 1);
  CHECK(copy() != x);
  CHECK(goes_on(world));

  Process& newcomer = world.start("p");
  newcomer.member->keep_parameters(true);
  const std::vector<float> own(newcomer.member->parameters().begin(),
                               newcomer.member->parameters().end());
  world.run(EpochTime(5'000));
  CHECK(newcomer.member->standing() == EpochStanding::joining);
  CHECK(std::ranges::equal(own, newcomer.member->parameters()));
  newcomer.member->keep_parameters(false);
  CHECK(goes_on(world));
}

TEST_CASE("epochs: newcomers that come one after the other are taken in together") {
  EpochWorld world = running({"a", "b", "c"});
  const std::vector<std::string> names = {"p", "q", "r", "s", "t"};
  for (const std::string& name : names) {
    world.start(name);
    world.run(EpochTime(700));  // so that each would like a copy of another step
  }
  const auto all_in = [&] {
    return std::ranges::all_of(names, [&](const std::string& name) {
      return world.at(name).member->standing() == EpochStanding::member;
    });
  };
  world.run(EpochTime(12'000), all_in);
  CHECK(all_in());
  CHECK(world.at("a").member->epoch() == 2);
}

TEST_CASE("epochs: no more than MAX members") {
  EpochWorld world({.seed = 5, .most = 2, .founders = {"a", "b"}});
  world.start("a");
  world.start("b");
  world.start("p");
  world.run(EpochTime(30'000));
  CHECK(world.at("a").member->members().size() == 2);
  CHECK(world.at("p").member->standing() == EpochStanding::joining);
  world.kill(world.at("b"), false);
  CHECK(goes_on(world));
}

namespace {

/// Begins a gradient that comes in these parts.
void begin_parts(Process& process, std::vector<Chunk> parts) {
  std::ranges::reverse(parts);
  process.draft = EpochWorld::Draft{.id = process.member->self(),
                                    .step = process.member->applied() + 1,
                                    .gradient = {1, 2, 3, 4, 5},
                                    .left = std::move(parts)};
}

/// All are to begin with the same step.
void until_all_compute(EpochWorld& world) {
  world.run(kLong, [&] {
    return std::ranges::all_of(world.all(), [&](const Process* process) {
      return process->member->wants_gradient() && process->member->step() == world.committed();
    });
  });
  for (Process* process : world.all()) {
    (void)process->member->take_left_out();
  }
}

void tick_all(EpochWorld& world, int times) {
  for (int k = 0; k < times; ++k) {
    world.pass(EpochTime(100));
    for (Process* process : world.all()) {
      world.tick(*process);
    }
    world.settle();
  }
}

}  // namespace

TEST_CASE("epochs: members know whose gradients came after the grace") {
  const std::uint64_t seed = drawn_seed();
  CAPTURE(seed);
  RandomStream draw({.seed = seed, .purpose = Purpose::faults});
  for (int play = 0; play < 20; ++play) {
    std::vector<std::string> names;
    for (std::uint64_t k = 0, count = 3 + draw.below(5); k < count; ++k) {
      names.push_back("n" + std::to_string(k));
    }
    EpochWorld world = running(names, {}, EpochTime(300));
    std::map<std::string, std::uint64_t> expected;
    for (std::uint64_t k = 0, late = draw.below((names.size() + 1) / 2); k < late; ++k) {
      expected[names[draw.below(names.size())]] = 1;
    }
    until_all_compute(world);
    const Round step = world.committed() + 1;
    for (Process* process : world.all()) {
      if (!expected.contains(process->name)) {
        world.offer(*process);
      }
    }
    tick_all(world, 20);
    CAPTURE(names.size());
    CAPTURE(expected.size());
    for (Process* process : world.all()) {
      CHECK(process->member->step() == step);
      const LeftOut seen = process->member->take_left_out();
      CHECK(seen.counts == expected);
      CHECK(seen.latest == (expected.empty() ? 0 : step));
      CHECK(process->member->take_left_out().counts.empty());
    }
  }
}

TEST_CASE(
    "epochs: chunks and their means travel while members compute, and what was given is kept") {
  EpochWorld world = running({"a", "b", "c"});
  until_all_compute(world);
  const Round step = world.committed() + 1;
  int chunks = 0;
  int parts = 0;
  world.lose([&](const Process& /*from*/, const std::string& /*to*/, const EpochMessage& message) {
    chunks += is<ChunkMessage>(message) ? 1 : 0;
    parts += is<PartMessage>(message) ? 1 : 0;
    return false;
  });
  for (Process* process : world.all()) {  // chunks of three members: 2, 2, 1
    begin_parts(*process, {{3, 1}, {1, 2}, {0, 1}, {4, 1}});
    world.give_part(*process);
  }
  world.settle();
  CHECK(chunks == 0);  // none is complete
  for (Process* process : world.all()) {
    world.give_part(*process);
  }
  world.settle();
  CHECK(chunks == 2);  // to b, who needs none from itself
  CHECK(parts == 2);   // b's mean, to a and c
  for (int k = 0; k < 2; ++k) {
    for (Process* process : world.all()) {
      world.give_part(*process);
    }
  }
  world.settle();
  CHECK(chunks == 4);  // what the last part completes waits for the offer
  CHECK(parts == 4);
  CHECK(world.committed() + 1 == step);
  world.kill(world.at("b"), false);
  tick_all(world, 20);
  CHECK(world.at("a").member->members().size() == 2);
  CHECK(world.at("a").draft->left.empty());
  CHECK(world.committed() + 1 == step);
  for (Process* process : world.all()) {
    world.offer(*process);
  }
  world.settle();
  CHECK(world.committed() == step);
  CHECK(goes_on(world));
}

TEST_CASE("epochs: a chunk that comes early makes nobody late") {
  EpochWorld world = running({"a", "b", "c"}, {}, EpochTime(300));
  until_all_compute(world);
  begin_parts(world.at("a"), {{2, 3}, {0, 2}});
  world.give_part(world.at("a"));
  tick_all(world, 20);
  world.offer(world.at("b"));
  tick_all(world, 2);
  world.offer(world.at("c"));
  world.offer(world.at("a"));
  world.settle();
  for (Process* process : world.all()) {
    CHECK(process->member->take_left_out().counts.empty());
  }
}

TEST_CASE("epochs: a gradient of which only some parts came in time is left out, and told so") {
  EpochWorld world = running({"a", "b", "c"}, {}, EpochTime(300));
  until_all_compute(world);
  const Round step = world.committed() + 1;
  Process& slow = world.at("c");
  begin_parts(slow, {{0, 2}, {2, 3}});
  world.give_part(slow);
  world.offer(world.at("a"));
  world.offer(world.at("b"));
  tick_all(world, 20);
  CHECK(world.committed() == step);
  CHECK(world.at("a").member->take_left_out().counts ==
        std::map<std::string, std::uint64_t>{{"c", 1}});
  const StepMean* const mean = world.at("a").member->committed(step);
  REQUIRE(mean != nullptr);
  CHECK(mean->parts[0].who.size() == 3);  // the part of c that came in time counts
  CHECK(mean->parts[1].who.size() == 2);
  CHECK(slow.member->is_late());
  world.offer(slow);  // which throws unless it is told that it is left out
  CHECK(goes_on(world));
}

}  // namespace sotto::test::epoch_scenarios_test
