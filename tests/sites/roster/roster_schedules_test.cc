// Thousands of random schedules of nodes that come, go, die and are cut off: within a bound after
// the last fault all that run agree and are connected.
#include <bit>

#include <doctest/doctest.h>

#include "sites/roster/roster_world.h"

namespace sotto::test::roster_schedules_test {

using namespace sotto::sites;
using namespace std::chrono_literals;

namespace {

/// 2 s · (⌈log2 n⌉ + 4) until views agree.
RosterTime agreed_within(std::size_t nodes) { return 2'000ms * (std::bit_width(nodes - 1) + 4); }
/// Silent nodes are noticed, and those next to them become neighbours.
constexpr RosterTime kReconnected = 20s;
/// After a partition the sides find each other by the next probe of a silent node.
constexpr RosterTime kFound = sites::RosterContacts::kLongestBackOff;

struct Schedule {
  std::uint64_t seed = 0;
  std::size_t nodes = 8;
  int faults = 12;
  double repeats = 0;
};

class Play {
 public:
  explicit Play(const Schedule& schedule)
      : schedule_(schedule),
        world_(schedule.seed, {.refused_end = true, .repeats = schedule.repeats}) {}

  RosterWorld& run() {
    for (int k = 0; k < 2; ++k) {
      seeds_.push_back("10.9.0." + std::to_string(k) + ":1");
    }
    for (std::size_t k = 0; k < schedule_.nodes; ++k) {
      start(k);
      world_.run_for(RosterTime(random().below(300)));
    }
    world_.run_for(5s);
    for (int k = 0; k < schedule_.faults; ++k) {
      strike();
      world_.run_for(RosterTime(random().below(6'000)));
      check_memory();
    }
    heal();
    // A run that lost a seed gets it back, or its parts could not find each other.
    for (std::size_t k = 0; k < seeds_.size(); ++k) {
      if (!world_.runs(seeds_[k])) {
        start(k);
      }
    }
    world_.run_for(kFound);
    return world_;
  }

 private:
  RandomStream& random() { return world_.random(); }
  void start(std::size_t k) {
    const std::string name = "node" + std::to_string(k);
    world_.start(name, seeds_, 2, 200, k < seeds_.size() ? seeds_[k] : std::string());
  }
  std::string any() {
    const auto all = world_.addresses();
    return all[random().below(all.size())];
  }
  void leave(const std::string& address) {
    world_.at(address).leave(world_.now());
    world_.carry(address);
    world_.run_for(RosterTime(random().below(2'000)));
    if (!world_.runs(address)) {
      return;  // it was refused meanwhile
    }
    world_.at(address).depart(world_.now());
    world_.carry(address);
    world_.kill(address);
  }
  void strike() {
    switch (random().below(8)) {
      case 0:
        world_.kill(any());
        break;
      case 1:
        leave(any());
        break;
      case 2:
      case 3:
        start(schedule_.nodes + random().below(4));  // some names more than once
        break;
      case 4: {  // killed, and started again at once
        const std::string address = any();
        const std::string name = world_.at(address).self().name;
        world_.kill(address);
        world_.start(name, seeds_, 2, 200, address);
        break;
      }
      case 5:  // preempted together
        for (std::uint64_t count = 1 + random().below(schedule_.nodes / 2); count > 0; --count) {
          if (world_.addresses().size() > 2) {
            world_.kill(any());
          }
        }
        break;
      case 6:
        divide(random().below(2) == 0);
        break;
      default:
        heal();
        break;
    }
    if (world_.addresses().size() < 2) {
      start(schedule_.nodes + random().below(4));
    }
  }
  void divide(bool one_way) {
    std::set<std::string> left;
    std::set<std::string> right;
    for (const std::string& address : world_.addresses()) {
      (random().below(2) == 0 ? left : right).insert(address);
    }
    world_.cut(left, right);
    if (!one_way) {
      world_.cut(right, left);
    }
  }
  void heal() { world_.heal(); }
  void check_memory() {
    for (const std::string& address : world_.addresses()) {
      const RosterBook& book = world_.at(address).book();
      CHECK(book.size() <= 200 + Roster::kMostBesides);
      CHECK(book.forgotten() <= RosterBook::kMostForgotten);
    }
  }

  Schedule schedule_;
  RosterWorld world_;
  std::vector<std::string> seeds_;
};

}  // namespace

TEST_CASE("roster: after the last fault of any schedule all agree and are connected, in time") {
  for (std::uint64_t seed = 0; seed < 1'500; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed, .round = 7});
    Play play({.seed = seed,
               .nodes = 3 + random.below(10),
               .faults = 4 + static_cast<int>(random.below(12)),
               .repeats = random.below(3) == 0 ? 0.1 : 0});
    RosterWorld& world = play.run();
    const std::size_t nodes = world.addresses().size();
    world.run_for(std::max(agreed_within(nodes), kReconnected));
    CAPTURE(world.words());
    REQUIRE(world.agree());
    REQUIRE(world.connected());
  }
}

TEST_CASE("roster: 64 nodes agree within 20 s of the last fault") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    CAPTURE(seed);
    Play play({.seed = 5'000 + seed, .nodes = 64, .faults = 10});
    RosterWorld& world = play.run();
    world.run_for(20s);
    CHECK(world.agree());
    CHECK(world.connected());
  }
}

TEST_CASE("roster: a schedule plays the same again") {
  for (const std::uint64_t seed : {3U, 4U}) {
    Play one({.seed = seed});
    Play other({.seed = seed});
    RosterWorld& first = one.run();
    RosterWorld& second = other.run();
    CHECK(first.bytes() == second.bytes());
    CHECK(first.addresses() == second.addresses());
    for (const std::string& address : first.addresses()) {
      CHECK(first.at(address).book().entries() == second.at(address).book().entries());
    }
  }
}

TEST_CASE("roster: a run at rest says little") {
  RosterWorld world(11, {.loss = 0, .slowest_ms = 50});
  std::vector<std::string> seeds = {world.start("node0", {})};
  for (int k = 1; k < 32; ++k) {
    world.start("node" + std::to_string(k), seeds);
  }
  world.run_for(20s);
  const auto before = world.bytes();
  world.run_for(100s);
  const double a_second_a_node = static_cast<double>(world.bytes() - before) / 100 / 32;
  MESSAGE("bytes a second and node: ", a_second_a_node);
  CHECK(a_second_a_node < 3'000);
}

}  // namespace sotto::test::roster_schedules_test
