// Members whose models or means differ from those of the others: who is put out, who goes on, and
// what one node that lies can do with it.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/sites/epochs/epoch_equality.h>
#include <sotto/sites/epochs/epoch_rules.h>

#include "sites/epochs/epoch_play.h"
#include "sites/epochs/epoch_world.h"

namespace sotto::test::epoch_unequal_test {

using namespace sotto::sites;

namespace {

constexpr EpochTime kLong{20'000};

constexpr EpochDigest kOne{1, 1};
constexpr EpochDigest kTwo{2, 2};
constexpr EpochDigest kThree{3, 3};

EpochWorld world_of(const std::vector<std::string>& names, const EpochRules& rules = {}) {
  return EpochWorld({.seed = 5, .rules = rules, .founders = names});
}

EpochWorld running(const std::vector<std::string>& names, const EpochRules& rules = {}) {
  EpochWorld world = world_of(names, rules);
  for (const std::string& name : names) {
    world.start(name);
  }
  world.run(kLong, [&] { return world.committed() >= 2; });
  REQUIRE(world.committed() >= 2);
  return world;
}

/// Names of all that were put out as unequal, in order.
std::vector<std::string> put_out(const EpochWorld& world) {
  std::vector<std::string> names;
  for (const auto& [epoch, value] : world.decided()) {
    for (const EpochNode& node : value.unequal) {
      names.push_back(node.name);
    }
  }
  return names;
}

/// Whether these, and nobody else, are members of one epoch and take steps.
bool go_on(EpochWorld& world, std::size_t members) {
  const Round before = world.committed();
  bool all = false;
  world.run(EpochTime(60'000), [&] {
    all = world.committed() >= before + 3 && world.all().size() == members;
    for (const EpochWorld::Process* process : world.all()) {
      all = all && process->member->standing() == EpochStanding::member &&
            process->member->members().size() == members;
    }
    return all;
  });
  return all;
}

template <typename Body>
bool is(const EpochMessage& message) {
  return std::holds_alternative<Body>(message.body);
}

}  // namespace

TEST_CASE("epochs: what more than half have said is right, and a tie is told once none can win") {
  CHECK(judge({}, 3).unequal == 0);
  CHECK(judge({{0, kOne}, {1, kOne}, {2, kOne}}, 3).unequal == 0);
  CHECK(judge({{0, kOne}, {1, kTwo}, {2, kOne}}, 3).unequal == 0b010);
  CHECK_FALSE(judge({{0, kOne}, {1, kTwo}, {2, kOne}}, 3).tie);
  CHECK(judge({{0, kOne}, {1, kTwo}}, 2).tie);
  CHECK_FALSE(judge({{0, kOne}, {1, kTwo}}, 3).tie);  // the third has yet to speak
  CHECK(judge({{0, kOne}, {1, kTwo}, {2, kThree}}, 3).tie);
  CHECK(judge({{0, kOne}, {1, kTwo}, {2, kTwo}, {3, kOne}}, 4).tie);
  CHECK(judge({{0, kOne}, {1, kOne}, {3, kTwo}}, 4).unequal == 0);  // half is not more than half
  CHECK(judge({{0, kThree}, {1, kOne}, {2, kOne}, {3, kOne}, {4, kTwo}}, 5).unequal == 0b10001);
}

TEST_CASE(
    "epochs: of models' digests each member's last four are kept, and the first word counts") {
  EpochEquality said;
  for (Round step = 1; step <= 6; ++step) {
    said.note(0, {step, kOne});
    said.note(1, {step, step == 6 ? kTwo : kOne});
    said.note(2, {step, kOne});
  }
  said.note(1, {6, kOne});
  CHECK(said.said(2).empty());
  CHECK(said.said(6).at(1) == kTwo);
  CHECK(said.unequal(3) == 0b010);
  // One that says much of other steps drops its own words alone.
  for (Round step = 100; step < 200; ++step) {
    said.note(2, {step, kThree});
  }
  CHECK(said.said(6).size() == 2);
  CHECK_FALSE(said.tie(3, 0));
  said.clear();
  said.note(0, {1, kOne});
  said.note(1, {1, kTwo});
  CHECK(said.tie(2, 0) == Round{1});
  CHECK_FALSE(said.tie(2, 2));  // the own word has yet to be said
}

TEST_CASE("epochs: nobody is put out by the word of as few as half") {
  for (std::uint64_t members = 2; members <= 9; ++members) {
    for (std::uint64_t accusers = 0; accusers <= members; ++accusers) {
      EpochChoice choice;
      for (std::uint64_t k = 0; k < members; ++k) {
        const EpochNode node{std::string(1, static_cast<char>('a' + k)), 1, 0};
        choice.members.push_back(node);
        choice.promises[node] = {.by = node, .unequal = k < accusers ? 0b10U : 0U};
      }
      const EpochValue value = EpochRules().choose(choice);
      const bool out = 2 * accusers > members;
      CHECK(value.members.size() == members - (out ? 1 : 0));
      CHECK(value.unequal.size() == (out ? 1 : 0));
    }
  }
}

TEST_CASE("epochs: who is put out as unequal does not keep the others from carrying their mean") {
  EpochChoice choice;
  for (const char* name : {"a", "b", "c"}) {
    const EpochNode node{name, 1, 0};
    choice.members.push_back(node);
    choice.promises[node] = {.by = node,
                             .step = 4,
                             .mean = node.name == "c" ? kTwo : kOne,
                             .unequal = node.name == "c" ? 0U : 0b100U};
  }
  const EpochValue value = EpochRules().choose(choice);
  CHECK(value.base == 4);
  CHECK(value.carry == kOne);
  CHECK(value.members.size() == 2);
}

TEST_CASE("epochs: a step that one member alone can have made up is no base of the next epoch") {
  for (const bool out : {false, true}) {
    CAPTURE(out);
    EpochChoice choice{.base = 3, .own = Round{4}};
    for (const char* name : {"a", "b", "c"}) {
      const EpochNode node{name, 1, 0};
      choice.members.push_back(node);
      const bool lies = node.name == "c";
      choice.promises[node] = {.by = node,
                               .step = !lies ? Round{4}
                                       : out ? Round{5}
                                             : Round{6},
                               .mean = !lies ? std::optional(kOne) : std::nullopt,
                               .unequal = out && !lies ? 0b100U : 0U};
    }
    const EpochValue value = EpochRules().choose(choice);
    CHECK(value.base == 4);
    CHECK(value.carry == kOne);
    CHECK(value.members.size() == (out ? 2 : 3));
  }
}

TEST_CASE("epochs: a node whose model differs is put out, takes the state anew, and goes on") {
  for (const std::string bad : {"a", "c"}) {  // the eldest, which proposes first, and another
    EpochWorld world = running({"a", "b", "c"});
    const Round before = world.committed();
    world.spoil(world.at(bad));
    world.run(kLong, [&] { return !put_out(world).empty(); });
    CHECK(put_out(world) == std::vector<std::string>{bad});
    CHECK(world.committed() <= before + 6);
    world.run(EpochTime(1'000));
    const auto told = world.at("b").member->take_unequal();
    REQUIRE(told);
    CHECK(told->nodes.front().name == bad);
    CHECK_FALSE(told->own);
    const auto own = world.at(bad).member->take_unequal();
    REQUIRE(own);
    CHECK(own->own);
    CHECK(go_on(world, 3));
    CHECK(world.ended().empty());
    CHECK_FALSE(world.has_spoilt());
    for (const std::string name : {"a", "b", "c"}) {
      CHECK((name == bad || world.at(name).member->take_left_out().counts.empty()));
    }
    // A second time it ends, and says why; the others go on.
    world.spoil(world.at(bad));
    CHECK(go_on(world, 2));
    REQUIRE(world.ended().size() == 1);
    CHECK(world.ended().at(bad).find("after the state was taken anew") != std::string::npos);
    CHECK(world.ended().at(bad).find("test the machine") != std::string::npos);
  }
}

TEST_CASE("epochs: the model of a node that was put out is none to keep until it is taken anew") {
  EpochWorld world = running({"a", "b", "c"});
  EpochMember& bad = *world.at("c").member;
  CHECK(bad.has_sound_model());
  world.spoil(world.at("c"));
  world.run(kLong, [&] {
    if (bad.standing() == EpochStanding::member && !bad.file_copy().holds()) {
      bad.begin_copy({});
    }
    return bad.standing() == EpochStanding::joining;
  });
  REQUIRE(bad.standing() == EpochStanding::joining);
  CHECK_FALSE(bad.has_sound_model());
  CHECK_FALSE(bad.file_copy().holds());
  const auto first = bad.take_unequal();
  REQUIRE(first);
  CHECK(first->comes_back);
  CHECK(go_on(world, 3));
  CHECK(bad.has_sound_model());
  // A second time it does not say that it comes back.
  world.spoil(world.at("c"));
  CHECK(go_on(world, 2));
  const auto second = world.last_word("c");
  REQUIRE(second);
  CHECK(second->own);
  CHECK_FALSE(second->comes_back);
}

TEST_CASE("epochs: a node that differs while it leaves is gone, and does not come back") {
  EpochWorld world = running({"a", "b", "c"});
  world.spoil(world.at("c"));
  world.lose([](const EpochWorld::Process&, const std::string&, const EpochMessage& message) {
    return is<PrepareMessage>(message);
  });
  world.run(EpochTime(1'000));
  REQUIRE(world.at("c").member->standing() == EpochStanding::member);
  world.leave(world.at("c"));
  world.lose({});
  CHECK(go_on(world, 2));
  CHECK(world.ended().empty());
}

namespace {

/// Node c of three differs, and a newcomer p has copied its model, which the others hear from now
/// on.
EpochWorld copied_from_unequal() {
  EpochWorld world = running({"a", "b", "c"});
  world.lose(
      [](const EpochWorld::Process& from, const std::string& to, const EpochMessage& message) {
        return is<PrepareMessage>(message) ||
               (is<PieceMessage>(message) && to == "p" && from.name != "c");
      });
  world.spoil(world.at("c"));
  world.run(EpochTime(1'000));
  const EpochWorld::Process& newcomer = world.start("p");
  world.run(kLong, [&] { return newcomer.member->step() > 0; });
  REQUIRE(newcomer.member->step() > 0);
  REQUIRE(newcomer.x[0] == world.at("c").x[0]);
  REQUIRE(newcomer.x[0] != world.at("a").x[0]);
  world.lose({});
  return world;
}

}  // namespace

TEST_CASE("epochs: who has copied from a node that differs copies anew, and is not put out") {
  for (const bool dies : {false, true}) {  // one that dies says nothing of its next stay
    CAPTURE(dies);
    EpochWorld world = copied_from_unequal();
    if (dies) {
      world.lose(
          [](const EpochWorld::Process& from, const std::string&, const EpochMessage& message) {
            return from.name == "c" && is<JoinMessage>(message);
          });
      world.run(kLong, [&] { return !put_out(world).empty(); });
      world.kill(world.at("c"));
    }
    CHECK(go_on(world, dies ? 3 : 4));
    CHECK(put_out(world) == std::vector<std::string>{"c"});
    CHECK(world.ended().empty());
  }
}

TEST_CASE("epochs: where one of two differs both end, and name both digests") {
  EpochWorld world = running({"a", "b"});
  world.spoil(world.at("b"));
  world.run(kLong);
  REQUIRE(world.ended().size() == 2);
  for (const auto& [name, why] : world.ended()) {
    CAPTURE(why);
    CHECK(why.find("a has ") != std::string::npos);
    CHECK(why.find("b has ") != std::string::npos);
    CHECK(why.find("the model has no digest") != std::string::npos);
  }
  CHECK(put_out(world).empty());
}

TEST_CASE("epochs: where one of two differs and its word is lost, the elder does not go on alone") {
  for (const bool rates : {true, false}) {
    CAPTURE(rates);
    EpochWorld world = rates ? world_of({"a", "b"}) : running({"a", "b"});
    if (rates) {
      world.start("a");
      world.start("b", 0.25);
    } else {
      world.spoil(world.at("b"));
    }
    const Round before = world.committed();
    world.lose(
        [](const EpochWorld::Process& from, const std::string&, const EpochMessage& message) {
          const auto* const have = std::get_if<HaveMessage>(&message.body);
          return from.name == "b" && have != nullptr && !have->answers;
        });
    world.run(kLong);
    CHECK(world.ended().size() == 2);
    CHECK((!rates || world.committed() == before));
  }
}

TEST_CASE("epochs: a node with another learning rate is put out, and refused by the setting") {
  EpochWorld world = world_of({"a", "b", "c"});
  world.start("a");
  world.start("b");
  world.start("c", 0.25);
  CHECK(go_on(world, 2));
  CHECK(put_out(world) == std::vector<std::string>{"c"});
  CHECK(world.carried() == 1);  // the first step has the gradients of all three
  REQUIRE(world.ended().size() == 1);
  CHECK(world.ended().at("c").find("learning_rate: ") == 0);
}

TEST_CASE("epochs: a newcomer with other settings of a step is not let in, and told which") {
  for (const bool rate : {true, false}) {
    EpochWorld world = running({"a", "b"});
    const Epoch epoch = world.at("a").member->epoch();
    world.start("p", rate ? 0.25 : 0.125, rate ? 0 : 7);
    CHECK(go_on(world, 2));
    CHECK(world.at("a").member->epoch() == epoch);
    REQUIRE(world.ended().size() == 1);
    CHECK(world.ended().at("p").find(rate ? "learning_rate: " : "step_settings: ") == 0);
  }
}

TEST_CASE("epochs: a newcomer is not turned away by one member that says it has other settings") {
  EpochWorld world = running({"a", "b", "c"});
  world.forge([](const EpochWorld::Process& from, const std::string&, EpochMessage& message) {
    if (from.name == "b" && is<DonorMessage>(message)) {
      std::get<DonorMessage>(message.body).settings = StepSettings{0.5, 0, 0};
    }
  });
  world.start("p");
  CHECK(go_on(world, 4));
  CHECK(world.ended().empty());
}

namespace {

/// The eldest of three nodes, of which c has another learning rate, dies while none has heard of
/// another's mean. What is said after that is lost where `lost` says so.
EpochWorld lose_eldest_with_mean(const EpochWorld::Lost& lost) {
  EpochWorld world = world_of({"a", "b", "c"});
  world.start("a");
  world.start("b");
  world.start("c", 0.25);
  world.lose([](const EpochWorld::Process&, const std::string&, const EpochMessage& message) {
    return is<HaveMessage>(message);
  });
  world.run(EpochTime(3'000));
  REQUIRE(world.committed() == 0);
  REQUIRE(!world.at("b").member->wants_gradient());
  world.kill(world.at("a"), false);
  world.lose(lost);
  return world;
}

}  // namespace

TEST_CASE("epochs: two nodes with two learning rates end before anybody steps") {
  EpochWorld world = lose_eldest_with_mean({});
  world.run(kLong);
  CHECK(world.ended().size() == 2);
  for (const auto& [name, why] : world.ended()) {
    CAPTURE(why);
    CHECK(why.find("rates or settings") != std::string::npos);
    CHECK(why.find("b has ") != std::string::npos);
    CHECK(why.find("c has ") != std::string::npos);
  }
  CHECK(world.committed() == 0);
}

TEST_CASE("epochs: a node with another learning rate is found as it lacks the carried mean") {
  for (const bool leaves : {false, true}) {
    CAPTURE(leaves);
    EpochWorld world = world_of({"a", "b", "c"});
    world.start("a");
    world.start("b");
    world.start("c", 0.25);
    const auto is_have = [](const EpochWorld::Process&, const std::string&,
                            const EpochMessage& message) { return is<HaveMessage>(message); };
    world.lose(is_have);
    world.run(EpochTime(3'000));
    REQUIRE(world.at("c").member->epoch() == 1);
    world.lose(
        [&](const EpochWorld::Process& from, const std::string& to, const EpochMessage& message) {
          return is_have(from, to, message) || (from.name == "c" && is<PromiseMessage>(message));
        });
    world.suspect(world.at("a"), world.at("b"));  // c stays a member, of which nothing is known
    world.run(EpochTime(3'000), [&] { return world.carried() > 0; });
    REQUIRE(world.at("c").member->members().size() == 3);
    world.suspect_exactly();
    world.lose({});
    if (leaves) {
      world.leave(world.at("c"));
    }
    CHECK(go_on(world, 2));
    CHECK(world.ended().size() == (leaves ? 0 : 1));  // one that leaves does not come back
    CHECK((leaves || world.ended().at("c").find("learning_rate: ") == 0));
  }
}

namespace {

/// What c says to `to`, of three, is forged: digests that differ from message to message, or that
/// all others are unequal.
EpochWorld lied_to(const std::set<std::string>& to, bool digests, bool accuses,
                   const EpochRules& rules = {}) {
  EpochWorld world = running({"a", "b", "c"}, rules);
  world.at("c").odd = true;
  auto number = std::uint64_t{100};
  world.forge([=](const EpochWorld::Process& from, const std::string& whom,
                  EpochMessage& message) mutable {
    if (from.name != "c" || !to.contains(whom)) {
      return;
    }
    if (auto* have = std::get_if<HaveMessage>(&message.body); have != nullptr && digests) {
      have->digest = have->model.digest = {++number, 7};
    }
    if (auto* promise = std::get_if<PromiseMessage>(&message.body); promise != nullptr && accuses) {
      promise->promise.unequal = ~std::uint64_t{0};
    }
  });
  return world;
}

}  // namespace

TEST_CASE("epochs: one that lies to all is put out, and to one it costs epochs, and nobody else") {
  EpochWorld all = lied_to({"a", "b"}, true, true);
  all.run(EpochTime(30'000));
  REQUIRE_FALSE(put_out(all).empty());
  CHECK(all.committed() > 20);

  for (const bool accuses : {false, true}) {
    for (const char* one : {"a", "b"}) {
      CAPTURE(accuses);
      EpochWorld world = lied_to({one}, true, accuses);
      const Round before = world.committed();
      world.run(EpochTime(60'000));
      CHECK(world.committed() >= before + 3);
      CHECK(world.runs({"a", 1}));
      CHECK(world.runs({"b", 2}));
      CHECK(world.at("a").member->standing() == EpochStanding::member);
      MESSAGE(std::string(one),
              std::string(accuses ? " hears lies and accusations: " : " hears lies: "),
              world.committed() - before, " steps in a minute, in ", world.decided().size(),
              " epochs");
    }
  }
}

TEST_CASE("epochs: one that accuses all others puts nobody out, unless one word were enough") {
  const auto story = [](const EpochRules& rules) {
    EpochWorld world = lied_to({"a", "b"}, false, true, rules);
    world.leave(world.at("b"));  // an epoch ends, in which c has a vote
    world.run(kLong);
    CHECK(put_out(world).empty());
  };
  story({});
  CHECK_THROWS_AS(story({.unequal_by_most = false}), Violated);
}

}  // namespace sotto::test::epoch_unequal_test
