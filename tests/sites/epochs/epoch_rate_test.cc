// Newcomers behind a slow link: what they ask for comes once, however long it takes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "sites/epochs/epoch_world.h"
#include "support/seed.h"

namespace sotto::test::epoch_rate_test {

using namespace sotto::sites;

namespace {

using Process = EpochWorld::Process;

constexpr std::size_t kFloats = 16'384;
constexpr std::size_t kStateBytes = 2 * kFloats * sizeof(float);  // and the velocity

/// How often each piece, or part of a mean, was sent to the newcomer, by step and place.
using Sent = std::map<std::pair<Round, std::uint32_t>, int>;

/// A run that has taken two steps and pauses, and a newcomer behind a slow link.
class SlowWorld {
 public:
  SlowWorld(std::size_t members, std::size_t piece_bytes, double rate)
      : world_({.seed = 5,
                .dimension = kFloats,
                .founders = names(members),
                .join_memory = 1 << 24,
                .piece_bytes = piece_bytes,
                .newcomer_rate = rate}) {
    for (const std::string& name : names(members)) {
      world_.start(name);
    }
    world_.run(EpochTime(20'000), [&] { return world_.committed() >= 2; });
    REQUIRE(world_.committed() == 2);
    world_.lose([this](const Process&, const std::string& to, const EpochMessage& message) {
      if (to == "p") {
        note(message);
      }
      return false;
    });
    world_.start("p");
  }

  EpochWorld& world() { return world_; }
  EpochMember& newcomer() { return *world_.at("p").member; }
  const Sent& pieces() const { return pieces_; }
  const Sent& parts() const { return parts_; }
  /// Members make a step.
  void step() {
    for (Process* process : world_.all()) {
      world_.offer(*process);
    }
    world_.settle();
  }
  /// The time that it took until `done`; `longest` if it was not.
  template <typename Done>
  EpochTime pass(EpochTime longest, const Done& done) {
    const EpochTime began = world_.now();
    for (int k = 0; world_.now() - began < longest && !done(); ++k) {
      world_.pass(EpochTime(10));
      for (Process* process : world_.all()) {
        if (k % 10 == 0) {
          world_.tick(*process);
        }
      }
      world_.settle();
    }
    return world_.now() - began;
  }

 private:
  static std::vector<std::string> names(std::size_t members) {
    std::vector<std::string> all;
    for (std::size_t k = 0; k < members; ++k) {
      all.emplace_back(1, static_cast<char>('a' + k));
    }
    return all;
  }
  void note(const EpochMessage& message) {
    if (const auto* const piece = std::get_if<PieceMessage>(&message.body)) {
      ++pieces_[{piece->step, piece->index}];
    } else if (const auto* const part = std::get_if<PartMessage>(&message.body);
               part != nullptr && part->standing == PartMessage::Standing::held) {
      ++parts_[{part->step, part->part}];
    }
  }

  EpochWorld world_;
  Sent pieces_;
  Sent parts_;
};

bool each_once(const Sent& sent) {
  return std::ranges::all_of(sent, [](const auto& item) { return item.second == 1; });
}

}  // namespace

TEST_CASE("epochs: a newcomer asks one donor for each piece, and its link moves the state once") {
  const std::uint64_t seed = drawn_seed();
  CAPTURE(seed);
  RandomStream draw({.seed = seed, .purpose = Purpose::faults});
  for (int play = 0; play < 6; ++play) {
    const std::size_t members = 1 + draw.below(6);
    const std::size_t piece = 1'024 << draw.below(4);
    const double rate = 8.0 * static_cast<double>(1 + draw.below(8));
    CAPTURE(members);
    CAPTURE(piece);
    CAPTURE(rate);
    SlowWorld slow(members, piece, rate);
    const EpochTime took =
        slow.pass(EpochTime(60'000), [&] { return slow.newcomer().step() == 2; });
    const double alone = static_cast<double>(kStateBytes) / rate;
    CHECK(static_cast<double>(took.count()) < 1.3 * alone + 2'500);
    CHECK(each_once(slow.pieces()));
    CHECK(slow.pieces().size() == kStateBytes / piece + 1);
  }
}

TEST_CASE("epochs: a copy whose pieces take longer than donors are waited for comes whole") {
  const std::uint64_t seed = drawn_seed();
  CAPTURE(seed);
  RandomStream draw({.seed = seed, .purpose = Purpose::faults});
  for (int play = 0; play < 4; ++play) {
    // A piece takes 4 to 11 seconds. The first case has most donors to ask again.
    const std::size_t members = play == 0 ? 4 : 1 + draw.below(4);
    const double rate = play == 0 ? 3.0 : 3.0 + static_cast<double>(draw.below(6));
    CAPTURE(members);
    CAPTURE(rate);
    SlowWorld slow(members, std::size_t{32} << 10, rate);
    const EpochTime took =
        slow.pass(EpochTime(150'000), [&] { return slow.newcomer().step() == 2; });
    CHECK(static_cast<double>(took.count()) <
          2.2 * static_cast<double>(kStateBytes) / rate + 2'500);
    CHECK(slow.newcomer().step() == 2);
  }
}

TEST_CASE("epochs: a mean that takes long to come is asked for once") {
  const std::uint64_t seed = drawn_seed();
  CAPTURE(seed);
  RandomStream draw({.seed = seed, .purpose = Purpose::faults});
  for (int play = 0; play < 4; ++play) {
    const std::size_t members = 1 + draw.below(4);
    const double rate = 8.0 + static_cast<double>(draw.below(16));  // a mean takes 3 to 8 seconds
    CAPTURE(members);
    CAPTURE(rate);
    SlowWorld slow(members, 4'096, rate);
    slow.pass(EpochTime(10'000), [&] { return !slow.pieces().empty(); });
    REQUIRE(!slow.pieces().empty());
    for (int k = 0; k < 3; ++k) {
      slow.step();
    }
    slow.pass(EpochTime(120'000), [&] { return slow.newcomer().step() == 5; });
    CHECK(slow.newcomer().step() == 5);
    CHECK(slow.parts().size() == 3 * members);
    CHECK(each_once(slow.parts()));
  }
}

TEST_CASE("epochs: who lacks a carried mean asks one that has it, while that may be sending it") {
  EpochWorld world({.seed = 5, .founders = {"a", "b", "c", "d", "e"}});
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    world.start(name);
  }
  world.run(EpochTime(20'000), [&] { return world.committed() >= 2; });
  std::vector<std::string> asked;
  bool slow = true;
  world.lose([&](const Process& from, const std::string& to, const EpochMessage& message) {
    const auto* const part = std::get_if<PartMessage>(&message.body);
    const auto* const want = std::get_if<WantMessage>(&message.body);
    if (from.name == "e" && want != nullptr && want->part == kAllParts) {
      asked.push_back(to);
    }
    const bool made = part != nullptr && part->standing == PartMessage::Standing::made;
    return (to == "e" && part != nullptr && (made || slow)) ||
           (from.name == "e" && std::holds_alternative<PromiseMessage>(message.body));
  });
  world.run(EpochTime(1'000));
  world.kill(world.at("d"), false);
  world.run(EpochTime(5'000), [&] { return world.at("e").member->epoch() == 2; });
  REQUIRE(world.carried() == 1);
  world.run(EpochTime(1'600));
  CHECK(asked.size() == 1);
  world.run(EpochTime(1'000));
  REQUIRE(asked.size() == 2);
  CHECK(asked[0] != asked[1]);
  slow = false;
  const Round before = world.committed();
  world.lose({});
  world.run(EpochTime(20'000), [&] { return world.committed() > before + 2; });
  CHECK(world.committed() > before + 2);
}

}  // namespace sotto::test::epoch_rate_test
