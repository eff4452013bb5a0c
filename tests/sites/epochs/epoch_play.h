// A random schedule of one all-reduce in epochs: first faults of all kinds at any message, then
// peace, in which those that can must go on together.
#pragma once

#include <string>
#include <vector>

#include "sites/epochs/epoch_world.h"

namespace sotto::test {

class EpochPlay {
 public:
  /// How a schedule ended.
  enum class End { well, no_quorum, all_dead, all_left, blocked };

  explicit EpochPlay(std::uint64_t seed, std::string compressor = "none")
      : EpochPlay(options_for(seed, {}, std::move(compressor))) {}
  explicit EpochPlay(EpochWorld::Options options) : options_(options), world_(std::move(options)) {}

  EpochWorld& world() { return world_; }
  const EpochWorld::Options& options() const { return options_; }

  static EpochWorld::Options options_for(std::uint64_t seed, const sites::EpochRules& rules,
                                         std::string compressor = "none") {
    RandomStream draw({.seed = seed, .round = 3});
    EpochWorld::Options options{.seed = seed,
                                .dimension = 3 + draw.below(5),
                                .most = 16,
                                .compressor = std::move(compressor),
                                .rule = draw.below(2) == 0 ? "sgd" : "adam",
                                .rules = rules};
    if (draw.below(3) == 0) {
      options.grace = EpochTime(100);
    }
    const std::uint64_t founders = std::vector<std::uint64_t>{2, 3, 3, 4, 5}[draw.below(5)];
    for (std::uint64_t k = 0; k < founders; ++k) {
      options.founders.push_back(std::string(1, static_cast<char>('a' + k)));
    }
    options.parts = draw.below(2) == 0;
    options.spoils = seed % 4 == 1;
    options.begin = draw.below(3) == 0 ? 5 : 0;
    return options;
  }

  End run() {
    for (const std::string& founder : options_.founders) {
      world_.start(founder);
    }
    if (random().below(4) > 0) {
      world_.run(EpochTime(3'000), [&] { return world_.committed() > 0; });
    }
    if (random().below(2) == 0) {  // newcomers that are about to be taken in
      for (std::uint64_t k = 1 + random().below(2); k > 0; --k) {
        start_newcomer();
      }
      world_.run(EpochTime(6'000));
    }
    lossy_ = random().below(3) == 0;
    faults_ = std::vector<int>{0, 1, 1, 2, 2, 3}[random().below(6)];
    for (auto events = std::vector<int>{100, 200, 400, 800}[random().below(4)]; events > 0;
         --events) {
      if (world_.all().empty()) {
        return End::all_dead;
      }
      event();
    }
    return heal();
  }

 private:
  RandomStream& random() { return world_.random(); }
  EpochWorld::Process& any() {
    const auto all = world_.all();
    return *all[random().below(all.size())];
  }
  void event() {
    if (options_.spoils) {
      spoil_any();
    }
    world_.pass(EpochTime(random().below(60)));
    const std::uint64_t x = random().below(1000);
    if (x < 720) {
      deliver_any();
    } else if (x < 850) {
      world_.tick(any());
    } else if (x < 915) {
      world_.compute(any());
    } else if (x < 950) {
      suspicion();
    } else if (x < 958) {
      any().ahead += EpochTime(random().below(1'500));
    } else {
      fault(x);
    }
  }
  /// Now and then the model of a member is spoilt, where two others at least have theirs.
  void spoil_any() {
    EpochWorld::Process* const found = world_.all()[spoils_.below(world_.all().size())];
    if (spoils_.below(40) == 0 && found->member->standing() == EpochStanding::member &&
        found->member->members().size() > 2 && !world_.has_spoilt()) {
      world_.spoil(*found);
    }
  }
  void deliver_any() {
    std::vector<std::pair<EpochWorld::Key, EpochWorld::Key>> ends;
    for (const auto& [key, queue] : world_.queues()) {
      if (!queue.empty() && !world_.cut(key)) {
        ends.push_back(key);
      }
    }
    if (ends.empty()) {
      return;
    }
    const auto& chosen = ends[random().below(ends.size())];
    if (lossy_ && random().below(12) == 0) {
      world_.queues()[chosen].pop_front();
    } else {
      world_.deliver(chosen);
    }
  }
  void suspicion() {
    EpochWorld::Process& who = any();
    const EpochWorld::Process& whom = any();
    if (&who != &whom) {
      world_.suspect(who, whom, random().below(2) == 0);
    }
  }
  void fault(std::uint64_t x) {
    if (x < 966) {
      if (faults_ > 0) {
        --faults_;
        ++kills_;
        const std::string name = any().name;
        dead_.push_back(name);
        world_.kill(world_.at(name));
      }
    } else if (x < 972) {
      if (!dead_.empty()) {
        world_.start(dead_.back());
        dead_.pop_back();
      }
    } else if (x < 977) {
      if (world_.all().size() < 6) {
        start_newcomer();
      }
    } else if (x < 981) {
      EpochWorld::Process& who = any();
      if (faults_ > 0 && who.member->standing() == EpochStanding::member) {
        --faults_;
        world_.leave(who);
      }
    } else if (x < 988) {
      divide(random().below(3) == 0);
    } else if (x < 994) {
      world_.unblock();
    } else {
      for (auto& [ends, queue] : world_.queues()) {  // channels end, and are made anew
        if (random().below(3) == 0) {
          queue.clear();
        }
      }
    }
  }
  void start_newcomer() { world_.start(std::string(1, static_cast<char>('p' + joined_++))); }
  void divide(bool one_way) {
    std::vector<EpochWorld::Process*> sides[2];
    for (EpochWorld::Process* process : world_.all()) {
      sides[random().below(2)].push_back(process);
    }
    for (const EpochWorld::Process* left : sides[0]) {
      for (const EpochWorld::Process* right : sides[1]) {
        world_.block(*left, *right);
        if (!one_way) {
          world_.block(*right, *left);
        }
      }
    }
  }

  bool quorum_of(const std::vector<EpochNode>& members) {
    std::set<EpochNode> alive;
    for (const EpochNode& node : members) {
      if (world_.by_id(node) != nullptr) {
        alive.insert(node);
      }
    }
    return sites::EpochRules().quorum(alive, members);
  }
  /// Whether every epoch from the newest that the living know of has a quorum.
  bool can_go_on() {
    if (world_.decided().empty()) {
      std::set<EpochNode> alive;
      std::vector<EpochNode> founders;
      for (const std::string& name : options_.founders) {
        founders.push_back({name, 0, 0});
        if (world_.find(name) != nullptr) {
          alive.insert(founders.back());
        }
      }
      return sites::EpochRules().quorum(alive, founders);
    }
    Epoch known = 0;
    for (EpochWorld::Process* process : world_.all()) {
      if (process->member->standing() == EpochStanding::member) {
        known = std::max(known, process->member->epoch());
      }
    }
    if (known == 0) {
      return false;  // those that knew are gone
    }
    for (const auto& [epoch, value] : world_.decided()) {
      if (epoch + 1 >= known && !quorum_of(value.members)) {
        return false;
      }
    }
    return true;
  }
  bool together(Round least) {
    const EpochValue& newest = world_.decided().rbegin()->second;
    for (EpochWorld::Process* process : world_.all()) {
      const EpochMember& member = *process->member;
      if (member.standing() != EpochStanding::member ||
          member.epoch() != world_.decided().rbegin()->first + 1 || member.step() < least) {
        return false;
      }
    }
    return std::ranges::all_of(
        newest.members, [&](const EpochNode& node) { return world_.by_id(node) != nullptr; });
  }
  End heal() {
    world_.unblock();
    world_.suspect_exactly();
    const Round least = world_.committed() + 3;
    for (int rounds = 0; rounds < 120; ++rounds) {
      world_.run(EpochTime(500));
      const auto leaves = [](const EpochWorld::Process* process) {
        return process->member->standing() == EpochStanding::leaving;
      };
      const bool over =
          !world_.decided().empty() && world_.decided().rbegin()->second.members.empty();
      if (over || std::ranges::all_of(world_.all(), leaves)) {
        return world_.decided().empty() ? End::all_dead : End::all_left;
      }
      if (!can_go_on()) {
        return kills_ > 0 || !world_.ended().empty()
                   ? End::no_quorum
                   : End::blocked;  // leaving alone costs no quorum
      }
      if (!world_.decided().empty() && together(least)) {
        return End::well;
      }
    }
    return End::blocked;
  }

  EpochWorld::Options options_;
  EpochWorld world_;
  RandomStream spoils_{{.seed = options_.seed, .round = 4, .purpose = Purpose::faults}};
  int faults_ = 0;
  int kills_ = 0;
  bool lossy_ = false;
  std::vector<std::string> dead_;
  std::uint64_t joined_ = 0;
};

}  // namespace sotto::test
