#include <sotto/sites/epochs/epoch_rules.h>

#include <algorithm>

namespace sotto::sites {
namespace {

/// The accepted value of the highest ballot.
const AcceptedValue* highest(const std::map<EpochNode, EpochPromise>& promises) {
  const AcceptedValue* best = nullptr;
  for (const auto& [voter, promise] : promises) {
    if (promise.accepted && (best == nullptr || promise.accepted->ballot > best->ballot)) {
      best = &*promise.accepted;
    }
  }
  return best;
}

/// Members of the epoch that go on.
std::vector<EpochNode> staying(const EpochChoice& choice, const std::set<EpochNode>& unequal,
                               bool leavers_too) {
  std::vector<EpochNode> members;
  for (const EpochNode& member : choice.members) {
    if (unequal.contains(member)) {
      continue;
    }
    // A node that has promised is alive, whatever the proposer suspects.
    const auto promise = choice.promises.find(member);
    const bool stays = promise == choice.promises.end() ? !choice.unwanted.contains(member)
                                                        : !promise->second.leaving || leavers_too;
    if (stays) {
      members.push_back(member);
    }
  }
  return members;
}

}  // namespace

bool EpochRules::quorum(const std::set<EpochNode>& group,
                        const std::vector<EpochNode>& members) const {
  const auto there = static_cast<std::size_t>(std::ranges::count_if(
      members, [&](const EpochNode& member) { return group.contains(member); }));
  const bool half = 2 * there == members.size() && there > 0;
  return 2 * there > members.size() ||
         (half && (!half_has_eldest || group.contains(members.front()))) ||
         (there > 0 && !quorum_is_half);
}

bool EpochRules::commits(std::size_t having, std::size_t members) const {
  return having == members || (!all_have_mean && 2 * having > members);
}

bool EpochRules::admits(Round ready, Round base, bool carries) const {
  return (ready == base || (!admits_at_base && ready + 1 >= base)) &&
         !(carries && admits_unless_carried);
}

std::set<EpochNode> EpochRules::unequal(const EpochChoice& choice) const {
  std::set<EpochNode> unequal;
  for (std::size_t place = 0; place < choice.members.size(); ++place) {
    const auto heard_it = [&](const auto& item) {
      return (item.second.unequal >> place & 1U) != 0;
    };
    const auto heard = static_cast<std::size_t>(std::ranges::count_if(choice.promises, heard_it));
    if (2 * heard > choice.members.size() || (heard > 0 && !unequal_by_most)) {
      unequal.insert(choice.members[place]);
    }
  }
  return unequal;
}

std::vector<const EpochPromise*> EpochRules::credible(const EpochChoice& choice,
                                                      const std::set<EpochNode>& out) {
  std::vector<const EpochPromise*> credible;
  for (const auto& [voter, promise] : choice.promises) {
    if (!out.contains(voter) && (!choice.own || promise.step <= *choice.own + 1)) {
      credible.push_back(&promise);
    }
  }
  return credible;
}

EpochValue EpochRules::choose(const EpochChoice& choice) const {
  if (const AcceptedValue* accepted = highest(choice.promises);
      accepted != nullptr && respects_accepted) {
    return accepted->value;
  }
  // The others' mean is right, and may have been applied where a member that is put out said so.
  const std::set<EpochNode> out = unequal(choice);
  const std::vector<const EpochPromise*> promises = credible(choice, out);
  Round top = choice.base;
  for (const EpochPromise* promise : promises) {
    top = std::max(top, promise->step);
  }
  std::size_t at_top = 0;
  std::size_t having = 0;
  std::optional<EpochDigest> mean;
  bool one_mean = true;
  for (const EpochPromise* promise : promises) {
    at_top += promise->step == top ? 1U : 0U;
    if (promise->step == top && promise->mean) {
      ++having;
      one_mean = one_mean && (!mean || mean == promise->mean);
      mean = promise->mean;
    }
  }
  // A voter below the top shows that nobody has applied top + 1, as that one cannot have had it.
  // Two digests show that, too, as whoever applies a mean has heard of no other one; the members
  // make the step anew, and see that their digests differ.
  const bool carry = having > 0 && one_mean && at_top == promises.size() &&
                     having == (carries_unless_one_lacks ? at_top : choice.members.size());
  EpochValue value{.members = staying(choice, out, false),
                   .base = top,
                   .carry = carry ? mean : std::nullopt,
                   .history = choice.history,
                   .unequal = {out.begin(), out.end()}};
  for (const auto& [newcomer, ready] : choice.ready) {
    // Newcomers may have copied from one that is put out now.
    if (out.empty() && value.members.size() < choice.most && !choice.unwanted.contains(newcomer) &&
        admits(ready, top, carry) &&
        std::ranges::find(value.members, newcomer) == value.members.end()) {
      value.members.push_back(newcomer);
    }
  }
  if (value.members.empty() && (carry || choice.awaited)) {
    value.members = staying(choice, out, true);  // for one more epoch
  }
  return value;
}

}  // namespace sotto::sites
