// One roster after another: joining, names that are there twice, a full run, leaving.
#include <doctest/doctest.h>

#include <sotto/base/error.h>

#include "sites/roster/roster_world.h"

namespace sotto::test::roster_test {

using namespace sotto::sites;
using namespace std::chrono_literals;

namespace {

constexpr RosterWorld::Weather kFair{.loss = 0, .slowest_ms = 20};

/// The phase that the node at `address` sees of `name`; none: it knows nobody of that name.
std::optional<NodePhase> phase_seen(RosterWorld& world, const std::string& address,
                                    const std::string& name) {
  const auto found = world.at(address).book().find(name);
  return found.size() == 1 ? std::optional(found[0].phase) : std::nullopt;
}

/// Seeds of leases that nobody was seen to renew.
std::vector<RosterSeed> leased(const std::vector<std::string>& addresses) {
  std::vector<RosterSeed> seeds;
  seeds.reserve(addresses.size());
  for (const std::string& address : addresses) {
    seeds.push_back({.address = address});
  }
  return seeds;
}

}  // namespace

TEST_CASE("roster: a node whose seeds are its own address alone is up at once") {
  RosterWorld world(1, kFair);
  const auto seed = world.start("seed", {"10.0.0.1:9000"});
  CHECK(world.at(seed).standing() == RosterStanding::up);
  CHECK(world.at(seed).view().up == 1);
}

TEST_CASE("roster: a node whose only seeds are itself, by names, is up as soon as it knows") {
  RosterWorld world(3, kFair);
  const auto a = world.start("a", {"me:9000", "also-me:9000"}, 2);
  CHECK(world.at(a).view().asked.size() == 2);
  world.at(a).note_own_seed("me:9000", world.now());
  CHECK(world.at(a).standing() == RosterStanding::joining);
  world.at(a).note_own_seed("also-me:9000", world.now());
  CHECK(world.at(a).standing() == RosterStanding::up);
  CHECK(world.at(a).view().asked.empty());
  world.run_for(20s);
  CHECK(world.at(a).view().silent.empty());  // nobody answers at its own names
}

TEST_CASE("roster: a node whose seeds come later joins by those that are there then") {
  sites::RosterSetup setup{
      .name = "a", .incarnation = 1, .address = "10.0.0.1:1", .awaits_seeds = true, .settings = {}};
  const auto asks = [](Roster& roster, RosterTime now) {
    roster.tick(now);
    std::set<std::string> asked;
    for (const sites::RosterDatagram& sent : roster.released()) {
      asked.insert(sent.to);
    }
    return asked;
  };
  Roster alone(setup, RosterTime(0));
  CHECK(asks(alone, RosterTime(100'000)).empty());
  CHECK(alone.standing() == sites::RosterStanding::joining);
  alone.set_seeds(leased({"10.0.0.1:1"}), RosterTime(100'000));  // its own
  CHECK(alone.standing() == sites::RosterStanding::up);

  Roster late(setup, RosterTime(0));
  late.set_seeds(leased({"10.0.0.2:2", "10.0.0.3:3"}), RosterTime(100'000));
  CHECK(asks(late, RosterTime(100'000)) == std::set<std::string>{"10.0.0.2:2", "10.0.0.3:3"});
  CHECK(asks(late, RosterTime(100'000) + RosterJoining::kAloneAfter / 2).size() == 2);
  CHECK(late.standing() == sites::RosterStanding::joining);
  late.set_seeds(leased({"10.0.0.3:3", "10.0.0.4:4"}), RosterTime(102'000));
  CHECK(late.view().asked == std::vector<std::string>{"10.0.0.3:3", "10.0.0.4:4"});
  CHECK(asks(late, RosterTime(102'000)).contains("10.0.0.4:4"));
  (void)asks(late, RosterTime(100'000) + RosterJoining::kAloneAfter);
  CHECK(late.standing() == sites::RosterStanding::up);
  late.set_seeds({}, RosterTime(110'000));
  CHECK(asks(late, RosterTime(200'000)).empty());
}

TEST_CASE("roster: a lease that leads to another run is dropped, and ends nobody") {
  const auto setup = [](const std::string& name, const std::string& settings, bool awaits) {
    return sites::RosterSetup{.name = name,
                              .incarnation = 1,
                              .address = name + ":1",
                              .awaits_seeds = awaits,
                              .settings = settings};
  };
  Roster ours(setup("ours", "lr=1\n", false), RosterTime(0));
  Roster theirs(setup("theirs", "lr=2\n", false), RosterTime(0));
  Roster late(setup("late", "lr=1\n", true), RosterTime(0));
  const std::map<std::string, Roster*> nodes = {
      {"ours:1", &ours}, {"theirs:1", &theirs}, {"late:1", &late}};
  RosterTime now{0};
  const auto run_for = [&](RosterTime span) {
    for (const RosterTime end = now + span; now < end; now += RosterTime(100)) {
      for (const auto& [address, node] : nodes) {
        node->tick(now);
        for (const sites::RosterDatagram& sent : node->released()) {
          CHECK(nodes.at(sent.to)->receive(address, sent.message, now).ok());
        }
      }
    }
  };
  late.set_seeds({{.address = "theirs:1"}}, now);
  run_for(1s);
  CHECK(late.standing() == RosterStanding::joining);
  REQUIRE(late.view().strangers.size() == 1);
  CHECK(late.view().strangers[0].address == "theirs:1");
  CHECK(late.view().strangers[0].line == "lr=1");
  CHECK(late.view().asked.empty());
  // It goes on with the others, whatever the first said.
  late.set_seeds({{.address = "theirs:1"}, {.address = "ours:1"}}, now);
  run_for(10s);
  CHECK(late.standing() == RosterStanding::up);
  CHECK(late.view().up == 2);
  CHECK(late.view().silent.empty());
  // What was written before that answer came says nothing of who is there.
  late.set_seeds({{.address = "theirs:1", .renewals = 1}, {.address = "ours:1"}}, now);
  run_for(20s);
  CHECK_FALSE(late.view().other);
  // The other run shares the store: its settings are the operator's mistake.
  late.set_seeds({{.address = "theirs:1", .renewals = 2}, {.address = "ours:1"}}, now);
  run_for(20s);
  REQUIRE(late.view().other);
  CHECK(late.view().other->address == "theirs:1");
  CHECK(late.view().strangers.empty());
  CHECK(late.standing() == RosterStanding::up);
}

TEST_CASE("roster: nodes join by a seed within a second or so, and become neighbours") {
  RosterWorld world(2, kFair);
  const auto seed = world.start("seed", {});
  const auto a = world.start("a", {seed});
  const auto b = world.start("b", {seed});
  world.run_for(1500ms);
  for (const auto& address : {seed, a, b}) {
    CHECK(world.at(address).standing() == RosterStanding::up);
    CHECK(world.at(address).view().up == 3);
    for (const RosterMember& member : world.at(address).view().members) {
      CHECK(member.neighbour == (member.entry.address != address));
    }
  }
}

TEST_CASE("roster: a seed that does not answer is silent, until it does") {
  RosterWorld world(4, kFair);
  const std::string seed = "10.1.0.1:1";
  const auto a = world.start("a", {seed}, 2);
  world.run_for(5s);
  CHECK(world.at(a).view().silent.empty());
  world.run_for(5s);
  CHECK(world.at(a).view().silent == std::vector<std::string>{seed});
  world.start("seed", {seed}, 2, 200, seed);
  world.run_for(5s);
  CHECK(world.at(a).view().silent.empty());
  CHECK(world.at(seed).view().silent.empty());
  world.kill(seed);
  world.run_for(60s);
  CHECK(world.at(a).view().silent == std::vector<std::string>{seed});
}

TEST_CASE("roster: a seed that begins anew hears of those that go on before it begins alone") {
  // Whatever the time since it ended: the others ask its address again and again.
  for (const int away_s : {1, 7, 40, 300, 1'000}) {
    CAPTURE(away_s);
    RosterWorld world(5, {.loss = 0.2, .slowest_ms = 20});
    const std::string seed = "10.1.0.1:1";
    world.start("seed", {seed}, 1, 200, seed);
    const auto a = world.start("a", {seed});
    world.run_for(3s);
    world.at(seed).depart(world.now());
    world.run_for(1s);
    world.kill(seed);
    world.run_for(std::chrono::seconds(away_s));
    world.start("seed", {seed}, 1, 200, seed);
    world.run_for(25s);
    CHECK(world.at(seed).view().up == 2);
  }
}

TEST_CASE("roster: two that found nobody meet when their seed begins, long after") {
  RosterWorld world(3, kFair);
  const std::string seed = "10.1.0.1:1";
  const auto a = world.start("a", {seed}, 3);
  const auto b = world.start("b", {seed}, 3);
  world.run_for(60s);
  CHECK(world.at(a).view().up == 1);
  world.start("seed", {seed}, 3, 200, seed);
  world.run_for(5s);
  CHECK(world.at(a).view().up == 3);
  CHECK(world.at(b).view().up == 3);
}

TEST_CASE("roster: a second process of a name is refused while the first answers") {
  RosterWorld world(4, kFair);
  const auto seed = world.start("seed", {});
  const auto first = world.start("a", {seed});
  world.run_for(3s);
  const auto second = world.start("a", {seed});
  world.run_for(10s);
  CHECK(world.at(second).standing() == RosterStanding::duplicate);
  CHECK(world.at(first).standing() == RosterStanding::up);
  CHECK(world.at(seed).view().up == 2);
}

TEST_CASE("roster: a process that was killed is replaced by the next one of its name") {
  RosterWorld world(5, kFair);
  const auto seed = world.start("seed", {});
  const auto first = world.start("a", {seed});
  world.run_for(3s);
  world.kill(first);
  const auto second = world.start("a", {seed});
  world.run_for(6s);
  CHECK(world.at(second).standing() == RosterStanding::up);
  const auto found = world.at(seed).book().find("a");
  REQUIRE(found.size() == 1);
  CHECK(found[0].address == second);
}

TEST_CASE("roster: of two processes of a name that meet late, exactly one goes on") {
  for (std::uint64_t draw = 0; draw < 50; ++draw) {
    CAPTURE(draw);
    RosterWorld world(100 + draw, kFair);
    const auto seed = world.start("seed", {});
    const auto other = world.start("other", {seed});
    world.run_for(3s);
    const std::string one = "10.2.0.1:1";
    const std::string two = "10.2.0.2:1";
    world.cut({seed, one}, {other, two});
    world.cut({other, two}, {seed, one});
    world.start("a", {seed}, 1, 200, one);
    world.start("a", {other}, 1, 200, two);
    world.run_for(20s);
    CHECK(world.at(one).standing() == RosterStanding::up);
    CHECK(world.at(two).standing() == RosterStanding::up);
    world.heal();
    world.run_for(45s);
    const bool first = world.at(one).standing() == RosterStanding::up;
    CHECK(world.at(first ? two : one).standing() == RosterStanding::duplicate);
    world.kill(first ? two : one);
    world.run_for(20s);
    const auto found = world.at(seed).book().find("a");
    REQUIRE(found.size() == 1);
    CHECK(found[0].address == (first ? one : two));
  }
}

TEST_CASE("roster: a newcomer to a full run is refused, and let in when one has left") {
  RosterWorld world(6, kFair);
  const auto seed = world.start("seed", {}, 1, 2);
  const auto a = world.start("a", {seed}, 1, 2);
  world.run_for(3s);
  const auto late = world.start("late", {seed}, 1, 2);
  world.run_for(5s);
  CHECK(world.at(late).standing() == RosterStanding::full);
  CHECK(world.at(seed).view().up == 2);
  world.at(a).depart(world.now());
  world.carry(a);
  world.kill(a);
  const auto next = world.start("next", {seed}, 1, 2);
  world.run_for(3s);
  CHECK(world.at(next).standing() == RosterStanding::up);
}

TEST_CASE("roster: those that were killed take no place of a full run's") {
  for (std::uint64_t draw = 0; draw < 50; ++draw) {
    CAPTURE(draw);
    RosterWorld world(200 + draw, kFair);
    const std::size_t most = 2 + world.random().below(5);
    const auto seed = world.start("seed", {}, 1, most);
    std::vector<std::string> others;
    for (std::size_t k = 1; k < most; ++k) {
      others.push_back(world.start("node" + std::to_string(k), {seed}, 1, most));
    }
    world.run_for(5s);
    CHECK(world.at(seed).view().up == most);
    world.kill(others[world.random().below(others.size())]);
    world.run_for(RosterTime(world.random().below(9'000)));
    const auto next = world.start("next", {seed}, 1, most);
    world.run_for(RosterContacts::kSuspectAfter + 3s);
    CHECK(world.at(next).standing() == RosterStanding::up);
    const auto late = world.start("late", {seed}, 1, most);
    world.run_for(RosterContacts::kSuspectAfter + 3s);
    CHECK(world.at(late).standing() == RosterStanding::full);
  }
}

TEST_CASE("roster: a newcomer does not wait for the dead of a long run, and counts none of them") {
  for (std::uint64_t draw = 0; draw < 20; ++draw) {
    CAPTURE(draw);
    RosterWorld world(260 + draw, kFair);
    constexpr std::size_t kMost = 8;
    const auto seed = world.start("seed", {}, 1, kMost);
    const auto kept = world.start("kept", {seed}, 1, kMost);
    for (int k = 0; k < 12; ++k) {
      const auto dead = world.start("dead" + std::to_string(k), {seed}, 1, kMost);
      world.run_for(3s);
      world.kill(dead);
      world.run_for(RosterTime(world.random().below(2'000)));
    }
    const auto next = world.start("next", {seed}, 1, kMost);
    std::size_t most_up = 0;
    for (int k = 0; k < 35; ++k) {
      world.run_for(100ms);
      most_up = std::max(most_up, world.at(next).view().up);
    }
    CHECK(world.at(next).standing() == RosterStanding::up);
    CHECK(most_up == 3);
    for (const RosterMember& member : world.at(next).view().members) {
      CHECK(member.heard == !member.entry.name.starts_with("dead"));
    }
  }
}

TEST_CASE("roster: a node that leaves keeps its edges until it is gone, and gets no new ones") {
  RosterWorld world(7, kFair);
  const auto seed = world.start("seed", {});
  const auto a = world.start("a", {seed});
  world.run_for(3s);
  world.at(a).leave(world.now());
  const auto late = world.start("late", {seed});
  world.run_for(3s);
  CHECK(phase_seen(world, seed, "a") == NodePhase::leaving);
  const auto neighbours = [&](const std::string& address) {
    std::set<std::string> names;
    for (const RosterMember& member : world.at(address).view().members) {
      if (member.neighbour) {
        names.insert(member.entry.name);
      }
    }
    return names;
  };
  CHECK(neighbours(seed) == std::set<std::string>{"a", "late"});
  CHECK(neighbours(late) == std::set<std::string>{"seed"});
  CHECK(world.at(seed).view().up == 2);
  world.at(a).depart(world.now());
  world.carry(a);
  world.run_for(1s);
  CHECK(phase_seen(world, seed, "a") == NodePhase::gone);
  CHECK(neighbours(seed) == std::set<std::string>{"late"});
}

TEST_CASE("roster: the last node of a run says that it is over, to those that it has met alone") {
  RosterWorld world(8, kFair);
  const auto seed = world.start("seed", {});
  const auto a = world.start("a", {seed});
  const auto b = world.start("b", {seed});
  world.run_for(3s);
  world.at(a).depart(world.now());
  world.carry(a);
  world.run_for(1s);
  CHECK_FALSE(world.at(b).view().over);  // it has left, and the run goes on
  world.at(seed).depart(world.now(), true);
  world.carry(seed);
  world.run_for(1s);
  CHECK(phase_seen(world, b, "seed") == NodePhase::ended);
  CHECK(world.at(b).view().over);
  // One that comes later hears of it from others, and may be of another run.
  const auto late = world.start("late", {b});
  world.run_for(3s);
  CHECK(phase_seen(world, late, "seed") == NodePhase::ended);
  CHECK_FALSE(world.at(late).view().over);
}

TEST_CASE("roster: datagrams that were recorded and are sent again cut no edge") {
  for (std::uint64_t draw = 0; draw < 30; ++draw) {
    CAPTURE(draw);
    RosterWorld world(300 + draw, kFair);
    const auto seed = world.start("seed", {});
    std::vector<RosterDatagram> recorded;
    std::string other;
    world.watch([&](const std::string& from, const RosterDatagram& sent) {
      if (from == other && sent.to == seed) {
        recorded.push_back(sent);
      }
    });
    other = world.start("other", {seed});
    world.run_for(5s);
    world.cut({seed}, {other});  // while the other suspects the seed, it keeps no edge
    world.run_for(20s);
    world.heal();
    world.run_for(RosterContacts::kLongestBackOff + 5s);
    REQUIRE_FALSE(recorded.empty());
    const std::vector<RosterDatagram> all = recorded;
    for (int times = 0; times < 20; ++times) {
      world.forge(seed, other, all[world.random().below(all.size())].message);
      world.run_for(RosterTime(world.random().below(100)));
      for (const RosterMember& member : world.at(seed).view().members) {
        CHECK(member.neighbour == (member.entry.name == "other"));
      }
    }
  }
}

TEST_CASE("roster: whoever repeats what was recorded gets a short answer to each at most") {
  for (std::uint64_t draw = 0; draw < 20; ++draw) {
    CAPTURE(draw);
    RosterWorld world(500 + draw, kFair);
    const auto seed = world.start("seed", {});
    std::vector<std::vector<std::byte>> recorded;
    world.watch([&](const std::string& /*from*/, const RosterDatagram& sent) {
      if (sent.to == seed) {
        recorded.push_back(sent.message);
      }
    });
    for (int k = 0; k < 40; ++k) {
      world.start("node" + std::to_string(k), {seed});
    }
    world.run_for(5s);
    const auto all = std::exchange(recorded, {});
    const std::string forged = draw % 2 == 0 ? "10.0.0.2:9000" : "192.168.0.1:1";
    std::size_t marks = 0;
    for (const auto& message : all) {
      const bool is_marks = message[0] == std::byte{3};
      marks += is_marks ? 1U : 0U;
      (void)world.at(seed).released();
      REQUIRE(world.at(seed).receive(forged, message, world.now()).ok());
      const auto answers = world.at(seed).released();
      CHECK(answers.size() <= (message[0] == std::byte{1} ? 1U : 0U));
      for (const RosterDatagram& answer : answers) {
        CHECK(answer.message.size() <= message.size() + 200);
      }
    }
    CHECK(marks > 0);
  }
}

TEST_CASE("roster: an empty book of marks gets so many datagrams at most, and all in the end") {
  RosterWorld world(12, kFair);
  const auto seed = world.start("seed", {}, 1, 4000);
  std::vector<RosterEntry> entries;
  for (std::uint32_t k = 0; k < 1500; ++k) {
    entries.push_back({.name = std::string(80, 'x') + std::to_string(k),
                       .incarnation = 1 + k,
                       .life = 1,
                       .version = 1,
                       .phase = NodePhase::gone,
                       .address = "10.9.9.9:9999"});
  }
  for (const auto& message : encode_entries(0, entries)) {
    REQUIRE(world.at(seed).receive("10.8.0.1:1", message, world.now()).ok());
  }
  std::size_t most = 0;
  world.watch([&, at = RosterTime(-1), count = std::size_t{0}](const std::string& from,
                                                               const RosterDatagram&) mutable {
    count = from == seed && world.now() == at ? count + 1 : 1;
    at = world.now();
    most = std::max(most, count);
  });
  const auto late = world.start("late", {seed}, 1, 4000);
  world.run_for(15s);
  CHECK(world.at(late).book().size() == 1502);
  CHECK(most <= 80);
}

TEST_CASE("roster: a newcomer with other settings is told the first, and nobody takes it in") {
  for (std::uint64_t draw = 0; draw < 50; ++draw) {
    CAPTURE(draw);
    RosterWorld world(600 + draw, kFair);
    const std::vector<std::string> lines = {"nodes=1:9\n", "lr=0.1\n", "seed=4\n"};
    const std::size_t changed = world.random().below(lines.size() + 1);
    const std::string common = lines[0] + lines[1] + lines[2];
    std::string others;
    for (std::size_t k = 0; k < lines.size(); ++k) {
      others += k == changed ? "x=" + lines[k] : lines[k];
    }
    others += changed == lines.size() ? "more=1\n" : "";
    world.set_settings(common);
    const auto seed = world.start("seed", {});
    const auto a = world.start("a", {seed});
    world.run_for(RosterTime(world.random().below(5'000)));
    world.set_settings(others);
    const auto late = world.start("late", {seed});
    world.run_for(5s);
    CHECK(world.at(late).standing() == RosterStanding::other);
    const auto other = world.at(late).view().other;
    REQUIRE(other.has_value());
    CHECK(other->address == seed);
    CHECK(other->line + "\n" == (changed < lines.size() ? "x=" + lines[changed] : "more=1\n"));
    for (const auto& address : {seed, a}) {
      CHECK(world.at(address).book().size() == 2);
      CHECK(world.at(address).view().up == 2);
    }
  }
}

TEST_CASE("roster: of two that are each the first of a run, exactly one is to give way") {
  for (std::uint64_t draw = 0; draw < 20; ++draw) {
    CAPTURE(draw);
    RosterWorld world(700 + draw, kFair);
    const std::string one = "10.1.0.1:1";
    const std::string other = "10.1.0.2:1";
    world.cut({one, other}, {one, other});
    world.set_settings("first=one\n");
    world.start("a", {one, other}, 2, 200, one);
    world.run_for(RosterTime(world.random().below(3) * 40));
    world.set_settings("first=other\n");
    world.start("b", {other, one}, 2, 200, other);
    world.run_for(10s);
    world.heal();
    const auto gives_way = [&](const std::string& node) {
      const auto run = world.at(node).view().other;
      return run && run->goes_before;
    };
    for (int k = 0; k < 200 && !gives_way(one) && !gives_way(other); ++k) {
      world.run_for(100ms);
    }
    CHECK(gives_way(one) + gives_way(other) == 1);
  }
}

TEST_CASE("roster: datagrams of an earlier run, sent again, name nobody in the next") {
  for (std::uint64_t draw = 0; draw < 20; ++draw) {
    CAPTURE(draw);
    std::vector<std::pair<std::string, std::vector<std::byte>>> recorded;
    RosterWorld before(700 + draw, kFair);
    before.watch([&](const std::string& from, const RosterDatagram& sent) {
      recorded.emplace_back(from, sent.message);
    });
    before.set_settings("epochs=1\n");
    const auto first = before.start("first", {});
    before.start("second", {first});
    before.run_for(5s);
    RosterWorld next(800 + draw, kFair);
    next.set_settings("epochs=2\n");
    const auto seed = next.start("seed", {});
    next.run_for(1s);
    for (const auto& [from, message] : recorded) {
      next.forge(seed, from, message);
    }
    next.run_for(1s);
    CHECK(next.at(seed).book().size() == 1);
    CHECK(next.at(seed).standing() == RosterStanding::up);
  }
}

TEST_CASE("roster: a node that was suspected and speaks again is asked at once") {
  for (std::uint64_t draw = 0; draw < 20; ++draw) {
    CAPTURE(draw);
    RosterWorld world(400 + draw, kFair);
    const auto seed = world.start("seed", {});
    const auto other = world.start("other", {seed});
    std::vector<std::byte> last;
    std::size_t asked = 0;
    world.watch([&](const std::string& from, const RosterDatagram& sent) {
      const auto parsed = parse_roster(sent.message);
      const auto* probe = parsed.ok() ? std::get_if<RosterProbe>(&*parsed) : nullptr;
      if (probe != nullptr && !probe->answers && from == other && probe->entry) {
        last = sent.message;
      }
      asked += probe != nullptr && !probe->answers && from == seed ? 1U : 0U;
    });
    world.run_for(5s);
    world.cut({seed}, {other});
    world.cut({other}, {seed});
    world.run_for(RosterTime(100'000 + world.random().below(30'000)));
    CHECK(world.at(seed).view().up == 1);
    const std::size_t before = asked;
    world.forge(seed, other, last);
    world.run_for(300ms);
    CHECK(asked > before);
  }
}

TEST_CASE("roster: those that were forgotten on both sides of a partition meet again") {
  RosterWorld world(8, kFair);
  const auto seed = world.start("seed", {});
  const auto a = world.start("a", {seed});
  const auto b = world.start("b", {seed});
  const auto c = world.start("c", {seed});
  world.run_for(5s);
  world.cut({seed, a}, {b, c});
  world.cut({b, c}, {seed, a});
  world.run_for(Roster::kForgetAfter + 60s);
  CHECK(world.at(seed).book().size() == 2);
  CHECK(world.at(b).book().size() == 2);
  world.heal();
  world.run_for(RosterContacts::kLongestBackOff + 10s);
  for (const auto& address : {seed, a, b, c}) {
    CHECK(world.at(address).view().up == 4);
  }
  CHECK(world.agree());
}

TEST_CASE("roster: what is malformed is refused, and settings that cannot be") {
  RosterWorld world(9, kFair);
  const auto seed = world.start("seed", {});
  const std::vector<std::byte> nonsense(17, std::byte{3});
  CHECK(world.at(seed).receive("1.2.3.4:5", nonsense, 1s).fault() == Fault::malformed);
  const RosterSetup good{.name = "a", .incarnation = 1, .address = "h:1"};
  auto bad = good;
  bad.name = std::string(kMostRosterName + 1, 'x');
  CHECK_THROWS_AS(Roster(bad, 0ms), Error);
  bad = good;
  bad.least = 5;
  bad.most = 4;
  CHECK_THROWS_AS(Roster(bad, 0ms), Error);
  bad = good;
  bad.address.clear();
  CHECK_THROWS_AS(Roster(bad, 0ms), Error);
}

}  // namespace sotto::test::roster_test
