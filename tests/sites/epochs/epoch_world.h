// Many nodes of one all-reduce in epochs, in virtual time, and what must hold after each event: one
// mean a step, made of gradients that were offered for this step; one decision an epoch; equal
// bits. All that is random follows from one seed.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <sotto/base/philox.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/step_rule.h>
#include <sotto/sites/epochs/epoch_member.h>
#include <sotto/sites/epochs/epoch_reducer.h>

namespace sotto::test {

using sites::Epoch;
using sites::EpochMember;
using sites::EpochNode;
using sites::EpochStanding;
using sites::EpochTime;
using sites::EpochValue;

/// An invariant does not hold.
struct Violated : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A vector cut into one to five parts at random, in random order.
inline std::vector<Chunk> random_parts(std::size_t dimension, RandomStream& random) {
  std::set<std::size_t> ends = {dimension};
  for (std::uint64_t cuts = random.below(5); cuts > 0; --cuts) {
    ends.insert(1 + random.below(dimension));
  }
  std::vector<Chunk> parts;
  std::size_t first = 0;
  for (const std::size_t end : ends) {
    const auto place = static_cast<std::ptrdiff_t>(random.below(parts.size() + 1));
    parts.insert(parts.begin() + place, {first, end - first});
    first = end;
  }
  return parts;
}

class EpochWorld {
 public:
  struct Options {
    std::uint64_t seed = 0;
    std::size_t dimension = 5;
    std::size_t least = 1;
    std::size_t most = 8;
    std::string compressor = "none";
    std::string rule = "sgd";
    std::optional<EpochTime> grace = {};
    sites::EpochRules rules = {};
    bool founders_remember = true;
    std::vector<std::string> founders = {};
    std::size_t join_memory = 1 << 16;
    bool parts = false;            ///< compute() gives gradients in parts
    std::size_t piece_bytes = 16;  ///< of a copy of the state
    /// Bytes that reach a node which is no founder in a millisecond, from all together; 0: all come
    /// at once.
    double newcomer_rate = 0;
    bool spoils = false;  ///< models of members are spoilt now and then
    Round begin = 0;      ///< nodes begin with models of so many steps, or two fewer, or with none
  };
  /// A gradient that is given in parts.
  struct Draft {
    EpochNode id;    ///< the node at its first part
    Round step = 0;  ///< the step that it is for
    std::vector<float> gradient;
    std::vector<Chunk> left;  ///< parts that are not given yet
  };
  struct Process {
    std::string name;
    sites::Incarnation incarnation = 0;
    std::vector<float> x;
    std::unique_ptr<EpochMember> member;
    std::set<std::pair<std::string, sites::Incarnation>> suspects;
    EpochTime ahead{0};  ///< of its clock
    std::optional<Draft> draft;
    // As they were after the last event.
    Round step = 0;
    Epoch epoch = 0;
    bool wanted = false;
    bool odd = false;  ///< it may differ from the others, and be put out or end for it
    std::vector<float> at_wanted;
  };
  using Key = std::pair<std::string, sites::Incarnation>;
  using Lost = std::function<bool(const Process& from, const std::string& to,
                                  const sites::EpochMessage& message)>;

  explicit EpochWorld(Options options)
      : options_(std::move(options)),
        random_({.seed = options_.seed, .purpose = Purpose::faults}),
        parts_random_({.seed = options_.seed, .round = 1, .purpose = Purpose::faults}),
        begin_random_({.seed = options_.seed, .round = 2, .purpose = Purpose::faults}) {
    RandomStream stream({.seed = 1, .purpose = Purpose::initialize});
    for (std::size_t k = 0; k < options_.dimension; ++k) {
      start_.push_back(static_cast<float>(stream.normal()));
    }
    reference_ = start_;
    oracle_ = std::make_unique<sites::EpochModel>(reference_, ParameterLayout(), rule());
    models_[0] = start_;
    if (options_.begin > 0) {
      make_states();
    }
  }

  RandomStream& random() { return random_; }
  EpochTime now() const { return now_; }
  void pass(EpochTime time) { now_ += time; }

  /// Starts a process; all others hear of it.
  Process& start(const std::string& name, double learning_rate = 0.125,
                 std::uint64_t schedule = 0) {
    auto process = std::make_unique<Process>();
    process->name = name;
    process->incarnation = ++incarnations_;
    process->odd = learning_rate != 0.125 || schedule != 0;
    process->x = start_;
    process->member = std::make_unique<EpochMember>(
        sites::EpochSetup{.name = name,
                          .incarnation = process->incarnation,
                          .founders = options_.founders,
                          .least = options_.least,
                          .most = options_.most,
                          .parameters = process->x,
                          .layout = {},
                          .step_rule = rule(),
                          .learning_rate = learning_rate,
                          .step_settings = [schedule](Round) { return schedule; },
                          .compressor = make_compressor(options_.compressor, ContractKind::any),
                          .seed = 3,
                          .grace = options_.grace,
                          .delta = EpochTime(200),
                          .piece_bytes = options_.piece_bytes,
                          .join_memory = options_.join_memory,
                          .rules = options_.rules},
        now_);
    begin(*process);
    if (const auto votes = votes_.find(name);
        votes != votes_.end() && options_.founders_remember &&
        !process->member->load_founding_votes(votes->second).ok()) {
      throw Violated("votes are not read");
    }
    Process& made = *process;
    processes_[{name, process->incarnation}] = std::move(process);
    tell_peers();
    return made;
  }
  bool runs(const Key& key) const { return processes_.contains(key); }
  /// The living process of a name, the latest.
  Process* find(const std::string& name) {
    Process* found = nullptr;
    for (auto& [key, process] : processes_) {
      found = key.first == name ? process.get() : found;
    }
    return found;
  }
  Process& at(const std::string& name) { return *find(name); }
  std::vector<Process*> all() {
    std::vector<Process*> list;
    for (auto& [key, process] : processes_) {
      list.push_back(process.get());
    }
    return list;
  }
  Process* by_id(const EpochNode& id) {
    const auto found = processes_.find({id.name, id.incarnation});
    return found == processes_.end() || found->second->member->self() != id ? nullptr
                                                                            : found->second.get();
  }
  /// The process ends at once; of what it has sent, some channels lose a tail.
  void kill(Process& process, bool tails = true) {
    const Key key{process.name, process.incarnation};
    for (auto& [ends, queue] : queues_) {
      if (ends.second == key) {
        queue.clear();
      } else if (ends.first == key && tails && !queue.empty()) {
        queue.resize(queue.size() - random_.below(queue.size() + 1));
      }
    }
    processes_.erase(key);
    tell_peers();
  }
  /// A bit of a node's model flips, as where its memory fails.
  void spoil(Process& process) {
    process.x[0] = process.x[0] == 1 ? 2 : 1;
    process.at_wanted = process.x;
    process.odd = spoilt_ = true;
    spoilt_ids_.insert(process.member->self());
  }
  /// Whether a node runs whose model differs from the run's.
  bool has_spoilt() {
    return std::ranges::any_of(
        all(), [&](const Process* one) { return spoilt_ids_.contains(one->member->self()); });
  }
  /// Nodes that have ended as they, or others of their epoch, differ: why, by name.
  const std::map<std::string, std::string>& ended() const { return ended_; }
  /// What a node that has ended said of members that were put out; none: nothing.
  std::optional<sites::PutOutUnequal> last_word(const std::string& name) const {
    const auto found = last_words_.find(name);
    return found == last_words_.end() ? std::nullopt : found->second;
  }
  /// What a node says is another thing for some.
  using Forge =
      std::function<void(const Process& from, const std::string& to, sites::EpochMessage& message)>;
  void forge(Forge forge) { forge_ = std::move(forge); }
  /// From now on `a` hears nothing of `b`.
  void block(const Process& from, const Process& to) {
    blocked_.insert({{from.name, from.incarnation}, {to.name, to.incarnation}});
  }
  void unblock() { blocked_.clear(); }
  bool cut(const std::pair<Key, Key>& ends) const { return blocked_.contains(ends); }
  std::map<std::pair<Key, Key>, std::deque<std::vector<std::byte>>>& queues() { return queues_; }
  void lose(Lost lost) { lost_ = std::move(lost); }
  void suspect(Process& who, const Process& whom, bool does = true) {
    const Key key{whom.name, whom.incarnation};
    does ? (void)who.suspects.insert(key) : (void)who.suspects.erase(key);
    tell_peers();
  }
  /// Everybody suspects exactly those that are dead.
  void suspect_exactly() {
    for (auto& [key, process] : processes_) {
      process->suspects.clear();
    }
    tell_peers();
  }

  // Events; each ends with look().
  bool deliver(const std::pair<Key, Key>& ends) {
    auto& queue = queues_[ends];
    if (queue.empty() || blocked_.contains(ends) || !comes(ends)) {
      return false;
    }
    const std::vector<std::byte> message = std::move(queue.front());
    queue.pop_front();
    if (const auto to = processes_.find(ends.second); to != processes_.end()) {
      Process& process = *to->second;
      if (!process.member->receive(ends.first.first, ends.first.second, message, clock(process))
               .ok()) {
        throw Violated("a node does not read what another wrote");
      }
      after(process);
    }
    return true;
  }
  void tick(Process& process) {
    process.member->tick(clock(process));
    after(process);
  }
  /// Offers a gradient, or gives a part of one.
  void compute(Process& process) {
    options_.parts&& parts_random_.below(2) == 0 ? give_part(process) : offer(process);
  }
  /// Gives the next part of a gradient, which begins with the first; after the last one offers it.
  void give_part(Process& process) {
    EpochMember& member = *process.member;
    if (!member.wants_gradient()) {
      return;
    }
    if (!process.draft) {
      process.draft = {.id = member.self(),
                       .step = member.applied() + 1,
                       .gradient = random_gradient(),
                       .left = random_parts(options_.dimension, parts_random_)};
    } else if (process.draft->left.empty()) {
      offer(process);
      return;
    }
    Draft& draft = *process.draft;
    const Chunk part = draft.left.back();
    draft.left.pop_back();
    if (parts_random_.below(8) == 0) {
      std::vector<float> spoilt(part.size, 1);
      spoilt.back() = std::numeric_limits<float>::quiet_NaN();
      if (member.gradient_part(part.offset, spoilt, clock(process)).fault() != Fault::non_finite ||
          !member.released().empty()) {
        throw Violated(process.name + ": a part that is not finite is taken");
      }
    }
    const auto given = part.of(std::span<const float>(draft.gradient));
    if (in_time(process)) {
      auto& known = offers_
                        .try_emplace({draft.id, draft.step}, options_.dimension,
                                     std::numeric_limits<float>::quiet_NaN())
                        .first->second;
      std::ranges::copy(given, part.of(std::span<float>(known)).begin());
    }
    if (!member.gradient_part(part.offset, given, clock(process)).ok()) {
      throw Violated("a part of a gradient is refused: " + member.fault().message());
    }
    after(process);
  }
  void offer(Process& process) {
    if (!process.member->wants_gradient()) {
      return;
    }
    if (process.draft) {
      while (!process.draft->left.empty()) {
        give_part(process);
      }
      offer_parts(process);
      return;
    }
    const std::vector<float> gradient = random_gradient();
    const EpochNode id = process.member->self();
    const Round step = process.member->step() + 1;
    (void)process.member->outcome();
    process.wanted = false;
    if (!process.member->offer(gradient, clock(process)).ok()) {
      throw Violated("a gradient is refused: " + process.member->fault().message());
    }
    // Where it came too late, it is not for this step.
    const auto outcome = process.member->outcome();
    if (!outcome || outcome->step == step) {
      offers_.insert({{id, step}, gradient});
    }
    after(process);
  }
  void leave(Process& process) {
    process.wanted = false;
    process.draft.reset();
    process.member->leave(clock(process));
    after(process);
  }

  /// Delivers all, ticks all, lets all compute, for a time.
  void run(EpochTime time, const std::function<bool()>& until = {}) {
    for (const EpochTime end = now_ + time; now_ < end; now_ += EpochTime(200)) {
      for (Process* process : all()) {
        const Key key{process->name, process->incarnation};
        if (processes_.contains(key)) {
          tick(*process);
        }
        if (processes_.contains(key)) {
          compute(*process);
        }
      }
      settle();
      if (until && until()) {
        return;
      }
    }
  }
  /// Delivers all, but for what goes to or comes from the node of this name.
  void settle(const std::string& but_for = "") {
    for (bool moved = true; moved;) {
      moved = false;
      for (const auto& [key, count] : under_way()) {
        const bool kept = key.first.first == but_for || key.second.first == but_for;
        moved |= !kept && deliver(key);
      }
    }
  }
  /// Delivers what is under way to and from the node of this name, and not what that leads to.
  void deliver_once(const std::string& name) {
    for (const auto& [key, count] : under_way()) {
      for (std::size_t k = 0; k < count && (key.first.first == name || key.second.first == name);
           ++k) {
        deliver(key);
      }
    }
  }

  // What became of the run.
  const std::map<Epoch, EpochValue>& decided() const { return decided_; }
  Round committed() const { return committed_.empty() ? begun_ : committed_.rbegin()->first; }
  std::uint64_t commits() const { return commits_; }
  std::uint64_t entries() const { return entries_; }
  std::uint64_t carried() const {
    return static_cast<std::uint64_t>(std::ranges::count_if(
        decided_, [](const auto& item) { return item.second.carry.has_value(); }));
  }
  std::optional<std::vector<float>> gradient_of(const EpochNode& id, Round step) const {
    const auto found = offers_.find({id, step});
    return found == offers_.end() ? std::nullopt : std::optional(found->second);
  }
  /// What each node sees, for those that look into a failure.
  std::string words() const {
    std::string text;
    for (const auto& [key, process] : processes_) {
      const EpochMember& member = *process->member;
      text += "\n" + key.first + "#" + std::to_string(key.second) + "." +
              std::to_string(member.self().stay) + " standing " +
              std::to_string(static_cast<int>(member.standing())) + " epoch " +
              std::to_string(member.epoch()) + " step " + std::to_string(member.step()) + " base " +
              std::to_string(member.base()) + (member.frozen() ? " frozen" : "") +
              (member.wants_gradient() ? " wants" : "") + " of";
      for (const EpochNode& node : member.members()) {
        text += " " + node.name + "#" + std::to_string(node.incarnation) + "." +
                std::to_string(node.stay);
      }
    }
    for (const auto& [epoch, value] : decided_) {
      text += "\nend of " + std::to_string(epoch) + ": base " + std::to_string(value.base) +
              (value.carry ? " carried" : "") + " of";
      for (const EpochNode& node : value.members) {
        text += " " + node.name + "#" + std::to_string(node.incarnation) + "." +
                std::to_string(node.stay);
      }
    }
    return text;
  }

 private:
  /// A model that a node begins with, and its rule.
  struct State {
    std::vector<float> x;
    std::vector<std::byte> snapshot;
  };
  void make_states() {
    for (const Round step : {options_.begin - 2, options_.begin}) {
      std::vector<float> x = start_;
      sites::EpochModel model(x, ParameterLayout(), rule());
      for (Round k = 0; k < step; ++k) {
        std::vector<float> mean(options_.dimension);
        std::ranges::generate(mean, [&] { return static_cast<float>(begin_random_.normal()); });
        if (!model.apply(mean).ok()) {
          throw Violated("a model that nodes begin with is not made");
        }
      }
      states_[step] = {x, model.snapshot()};
    }
  }
  /// Gives a process the model that it begins with.
  void begin(Process& process) {
    const std::uint64_t drawn = options_.begin > 0 ? begin_random_.below(4) : 0;
    if (drawn == 0) {
      return;
    }
    const Round step = options_.begin - (drawn == 1 ? 2 : 0);
    if (!process.member->begin_from(step, states_.at(step).snapshot).ok() ||
        process.x != states_.at(step).x || process.member->applied() != step) {
      throw Violated("a node does not begin with its model");
    }
    begins_[{process.name, process.incarnation}] = step;
  }
  /// The run was founded: it goes on from the model of its members.
  void check_founding(const EpochValue& value) {
    begun_ = value.base;
    for (const EpochNode& member : value.members) {
      const auto found = begins_.find({member.name, member.incarnation});
      if ((found == begins_.end() ? 0 : found->second) != begun_) {
        throw Violated(member.name + " begins a run with the model of another step");
      }
    }
    if (begun_ > 0) {
      const State& state = states_.at(begun_);
      models_ = {{begun_, state.x}};
      if (!oracle_->restore(begun_, state.snapshot).ok()) {
        throw Violated("a state is not read");
      }
    }
  }
  std::unique_ptr<StepRule> rule() const {
    return make_step_rule({.rule = options_.rule,
                           .learning_rate = 0.125,
                           .momentum = options_.rule == "sgd" ? 0.5 : 0});
  }
  EpochTime clock(const Process& process) const { return now_ + process.ahead; }
  std::vector<float> random_gradient() {
    std::vector<float> gradient(options_.dimension);
    std::ranges::generate(gradient, [&] { return static_cast<float>(random_.normal()); });
    return gradient;
  }
  /// Whether the step that the node's gradient in parts is for is still to come, and the node was a
  /// member from its first part on: one that was put out drops what its caller goes on computing.
  static bool in_time(const Process& process) {
    return process.member->standing() == EpochStanding::member &&
           process.member->self() == process.draft->id &&
           process.member->step() + 1 == process.draft->step;
  }
  /// Offers a gradient all of whose parts are given.
  void offer_parts(Process& process) {
    const bool late = !in_time(process);
    (void)process.member->outcome();
    process.wanted = false;
    process.draft.reset();
    if (!process.member->offer(clock(process)).ok()) {
      throw Violated("a gradient in parts is refused: " + process.member->fault().message());
    }
    if (const auto outcome = process.member->outcome(); late && !(outcome && outcome->left_out)) {
      throw Violated(process.name + ": a gradient that came too late is not left out");
    }
    after(process);
  }
  std::vector<std::pair<std::pair<Key, Key>, std::size_t>> under_way() const {
    std::vector<std::pair<std::pair<Key, Key>, std::size_t>> found;
    for (const auto& [key, queue] : queues_) {
      if (!queue.empty()) {
        found.emplace_back(key, queue.size());
      }
    }
    return found;
  }
  void tell_peers() {
    for (auto& [key, process] : processes_) {
      std::vector<sites::EpochPeer> peers;
      for (const auto& [other, there] : processes_) {
        if (other != key) {
          peers.push_back({other.first, other.second, process->suspects.contains(other)});
        }
      }
      process->member->set_peers(peers);
    }
  }
  bool is_slow(const std::string& name) const {
    return options_.newcomer_rate > 0 &&
           std::ranges::find(options_.founders, name) == options_.founders.end();
  }
  /// A message to a node behind a slow link comes after all that was sent to that node before.
  void send_slowly(const std::pair<Key, Key>& ends, std::size_t bytes) {
    LinkTime& free = link_free_[ends.second];
    free = std::max<LinkTime>(free, now_) +
           LinkTime(static_cast<double>(bytes) / options_.newcomer_rate);
    arrivals_[ends].push_back(free);
  }
  /// Whether the next message of a channel has come whole by now.
  bool comes(const std::pair<Key, Key>& ends) {
    if (!is_slow(ends.second.first)) {
      return true;
    }
    auto& arrivals = arrivals_[ends];
    if (!arrivals.empty() && arrivals.front() > now_) {
      return false;
    }
    if (!arrivals.empty()) {
      arrivals.pop_front();
    }
    return true;
  }
  void after(Process& process) {
    if (process.member->votes_changed()) {
      votes_[process.name] = process.member->founding_votes();
    }
    const Key key{process.name, process.incarnation};
    for (sites::EpochParcel& parcel : process.member->released()) {
      const Key to{parcel.name, parcel.incarnation};
      sites::EpochMessage message = *sites::parse_epoch(parcel.bytes());
      check_told(process, message);
      if (forge_) {
        forge_(process, parcel.name, message);
        parcel = {parcel.name, parcel.incarnation, encode(message), {}};
      }
      const bool lost = lost_ && lost_(process, parcel.name, message);
      auto& queue = queues_[{key, to}];
      // A channel takes no long message that waits in it already.
      const bool waits = is_slow(to.first) && !parcel.tail.empty() &&
                         std::ranges::find(queue, parcel.bytes()) != queue.end();
      if (!lost && !waits && processes_.contains(to) && queue.size() < 400) {
        queue.push_back(parcel.bytes());
        if (is_slow(to.first)) {
          send_slowly({key, to}, queue.back().size());
        }
      }
    }
    if (process.member->standing() == EpochStanding::failed && may_end(process)) {
      ended_[process.name] = process.member->fault().message();
      last_words_[process.name] = process.member->take_unequal();
      kill(process, false);
      return;
    }
    look(process);
    if (process.member->standing() == EpochStanding::left) {
      kill(process, false);
    }
  }
  /// Whether a node may end by a fault: it is odd, or it is in an epoch with odd ones of which
  /// nobody can tell who is right.
  bool may_end(const Process& process) {
    const EpochMember& member = *process.member;
    const auto odd = static_cast<std::size_t>(
        std::ranges::count_if(member.members(), [&](const EpochNode& node) {
          const Process* one = by_id(node);
          return spoilt_ids_.contains(node) || ended_.contains(node.name) || one == nullptr ||
                 one->odd;
        }));
    const bool tie = member.fault().message().find("more than half") != std::string::npos &&
                     2 * odd >= member.members().size();
    return process.odd || tie;
  }
  /// Only members that are odd are put out as unequal, unless they are as many as half: a newcomer
  /// may have copied a model that was spoilt.
  void check_unequal(const std::string& who, Epoch epoch, const EpochValue& value) {
    const auto is_odd = [&](const EpochNode& node) {
      const auto found = processes_.find({node.name, node.incarnation});
      return spoilt_ids_.contains(node) || found == processes_.end() || found->second->odd;
    };
    const auto before = decided_.find(epoch - 1);
    if (before == decided_.end() || 2 * std::ranges::count_if(before->second.members, is_odd) >=
                                        std::ssize(before->second.members)) {
      return;
    }
    for (const EpochNode& node : value.unequal) {
      if (!is_odd(node)) {
        throw Violated(who + node.name + " is put out as unequal, and is not");
      }
    }
  }
  /// Nobody tells another end of an epoch than the one that was decided.
  void check_told(const Process& process, const sites::EpochMessage& message) {
    const auto* const told = std::get_if<sites::DecideMessage>(&message.body);
    const auto decided = decided_.find(message.header.epoch);
    if (told != nullptr && decided != decided_.end() && decided->second != told->value) {
      throw Violated(process.name + "#" + std::to_string(process.incarnation) +
                     ": tells another end of epoch " + std::to_string(message.header.epoch));
    }
  }
  void look(Process& process) {
    EpochMember& member = *process.member;
    const std::string who = process.name + "#" + std::to_string(process.incarnation) + ": ";
    if (member.standing() == EpochStanding::failed) {
      throw Violated(who + member.fault().message());
    }
    for (const auto& [epoch, value] : member.decisions()) {
      const auto [known, news] = decided_.try_emplace(epoch, value);
      if (known->second != value) {
        throw Violated(who + "epoch " + std::to_string(epoch) + " ends in two ways");
      }
      check_unequal(who, epoch, value);
      const auto before = decided_.find(epoch - 1);
      if (news && epoch > 0 && before != decided_.end() && before->second.base > value.base) {
        throw Violated(who + "the base goes back");
      }
      if (news && epoch == 0) {
        check_founding(value);
      }
    }
    for (Round step = process.step + 1; step <= member.step(); ++step) {
      if (const sites::StepMean* mean = member.committed(step)) {
        check_commit(who, step, *mean);
        ++commits_;
      }
    }
    process.step = member.step();
    if (member.epoch() != process.epoch && member.standing() == EpochStanding::member) {
      ++entries_;
      const auto begins = decided_.find(member.epoch() - 1);
      if (begins == decided_.end() || begins->second.members != member.members() ||
          member.step() < member.base()) {
        throw Violated(who + "has entered an epoch behind its base");
      }
    }
    process.epoch = member.epoch();
    check_parameters(who, process);
  }
  void check_commit(const std::string& who, Round step, const sites::StepMean& mean) {
    const auto [known, news] = committed_.try_emplace(step, mean);
    if (known->second != mean) {
      throw Violated(who + "step " + std::to_string(step) + " has two means");
    }
    if (!news) {
      return;
    }
    if (options_.compressor == "none" && !is_of_offers(step, mean)) {
      throw Violated(who + "step " + std::to_string(step) +
                     " is no mean of gradients that were offered for it");
    }
    if (oracle_->step() + 1 != step) {
      throw Violated(who + "step " + std::to_string(step) + " comes after " +
                     std::to_string(oracle_->step()));
    }
    std::vector<float> whole(options_.dimension);
    sites::EpochReducer reducer(options_.dimension,
                                make_compressor(options_.compressor, ContractKind::any), 3);
    if (!reducer.decode(mean, whole) || !oracle_->apply(whole).ok()) {
      throw Violated(who + "a mean cannot be applied");
    }
    models_[step] = reference_;
    models_.erase(models_.begin(), models_.lower_bound(step > 40 ? step - 40 : 0));
  }
  /// Whether the members of some epoch can have made the mean.
  bool is_of_offers(Round step, const sites::StepMean& mean) const {
    return std::ranges::any_of(decided_, [&](const auto& item) {
      const auto& members = item.second.members;
      return members.size() == mean.parts.size() && is_of(members, step, mean);
    });
  }
  bool is_of(const std::vector<EpochNode>& members, Round step, const sites::StepMean& mean) const {
    for (std::size_t k = 0; k < mean.parts.size(); ++k) {
      const Chunk chunk =
          chunk_of(options_.dimension, static_cast<int>(members.size()), static_cast<int>(k));
      std::vector<float> sum(chunk.size);
      for (std::size_t i = 0; i < members.size(); ++i) {
        const std::size_t member = (k + i) % members.size();
        if (std::ranges::find(mean.parts[k].who, member) == mean.parts[k].who.end()) {
          continue;
        }
        const auto found = offers_.find({members[member], step});
        if (found == offers_.end()) {
          return false;
        }
        for (std::size_t j = 0; j < sum.size(); ++j) {
          sum[j] += found->second[chunk.offset + j];
        }
      }
      for (float& value : sum) {
        value *= 1.0F / static_cast<float>(mean.parts[k].who.size());
      }
      if (!std::ranges::equal(std::as_bytes(std::span(sum)), mean.parts[k].encoding)) {
        return false;
      }
    }
    return true;
  }
  /// Whether the run began with this node, so that it has never copied a model.
  bool began_with(const EpochNode& id) const {
    const auto founding = decided_.find(0);
    return founding != decided_.end() &&
           std::ranges::find(founding->second.members, id) != founding->second.members.end();
  }
  void check_parameters(const std::string& who, Process& process) {
    const bool wanted = process.member->wants_gradient();
    if (wanted && process.wanted && process.x != process.at_wanted) {
      throw Violated(who + "parameters move while the caller computes");
    }
    if (wanted && !process.wanted) {
      process.at_wanted = process.x;
      const auto model = models_.find(process.member->step());
      const EpochNode id = process.member->self();
      const bool right = model != models_.end() && model->second == process.x;
      if (!right && spoilt_ && !began_with(id)) {  // it has copied a model that is spoilt
        process.odd = true;
        spoilt_ids_.insert(id);
      }
      if (!right && !spoilt_ids_.contains(id)) {
        throw Violated(who + "parameters are not those of the run after step " +
                       std::to_string(process.member->step()));
      }
    }
    process.wanted = wanted;
  }

  Options options_;
  RandomStream random_;
  RandomStream parts_random_;  ///< of gradients that are given in parts
  RandomStream begin_random_;  ///< of models that nodes begin with
  std::map<Round, State> states_;
  std::map<Key, Round> begins_;  ///< steps of the models that processes began with
  Round begun_ = 0;              ///< steps with which the run began
  std::vector<float> start_;
  std::vector<float> reference_;
  std::unique_ptr<sites::EpochModel> oracle_;
  EpochTime now_{0};
  std::map<Key, std::unique_ptr<Process>> processes_;
  std::map<std::pair<Key, Key>, std::deque<std::vector<std::byte>>> queues_;
  using LinkTime = std::chrono::duration<double, std::milli>;
  std::map<Key, LinkTime> link_free_;  ///< when all that was sent over a slow link has come
  std::map<std::pair<Key, Key>, std::deque<LinkTime>> arrivals_;  ///< of messages over slow links
  std::set<std::pair<Key, Key>> blocked_;
  std::map<std::string, std::vector<std::byte>> votes_;  ///< what founders have written
  Lost lost_;
  Forge forge_;
  bool spoilt_ = false;  ///< some model was
  std::set<EpochNode> spoilt_ids_;
  std::map<std::string, std::string> ended_;
  std::map<std::string, std::optional<sites::PutOutUnequal>> last_words_;
  sites::Incarnation incarnations_ = 0;
  std::map<Epoch, EpochValue> decided_;
  std::map<Round, sites::StepMean> committed_;
  std::map<Round, std::vector<float>> models_;
  std::map<std::pair<EpochNode, Round>, std::vector<float>> offers_;
  std::uint64_t commits_ = 0;
  std::uint64_t entries_ = 0;
};

}  // namespace sotto::test
