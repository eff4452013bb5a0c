#include <sotto/sites/roster/roster_joining.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace sotto::sites {
namespace {

using Join = JoinVerdict::Kind;
using Namesakes = NamesakeVerdict::Kind;

/// Whether as many are there as may be, without this node, or may be.
Join judge_room(const std::string& name, std::size_t most, const RosterContacts& contacts,
                RosterTime now) {
  std::size_t answer = 0;
  std::size_t may_answer = 0;  // those that others list may be dead
  for (const auto& [key, contact] : contacts.all()) {
    if (contact.phase != NodePhase::up || contact.name == name || contact.suspected) {
      continue;
    }
    if (contact.answered) {
      ++answer;
    } else if (!contact.asked || now - *contact.asked < RosterJoining::kAnswersWithin) {
      ++may_answer;
    }
  }
  if (answer >= most) {
    return Join::full;
  }
  return answer + may_answer >= most ? Join::waits : Join::joins;
}

}  // namespace

void RosterJoining::note_seeds(RosterTime now) {
  if (std::exchange(awaits_seeds_, false)) {
    began_ = now;
  }
}

void RosterJoining::note_answer(bool equal) {
  heard_ = true;
  equal_ = equal_ || equal;
}

JoinVerdict RosterJoining::judge(const std::string& name, std::size_t most, const RosterBook& book,
                                 const RosterContacts& contacts, RosterTime now) const {
  const bool late = now - began_ >= kAloneAfter;
  if (awaits_seeds_ || (!late && !(heard_ && equal_))) {
    return {};
  }
  std::vector<Incarnation> replaced;
  for (const RosterEntry& namesake : book.find(name)) {
    const RosterContact* const contact = contacts.find(namesake);
    const bool over = is_gone(namesake.phase);
    if (!over && contact != nullptr && contact->answered) {
      return {.kind = Join::duplicate};
    }
    const bool silent =
        contact != nullptr && contact->asked && now - *contact->asked >= kAloneAfter;
    if (!over && !silent) {
      return {};  // it is asked, and may answer
    }
    replaced.push_back(namesake.incarnation);
    replaced.insert(replaced.end(), namesake.replaces.begin(), namesake.replaces.end());
  }
  replaced.resize(std::min(replaced.size(), kMostReplaced));
  return {.kind = judge_room(name, most, contacts, now), .replaced = std::move(replaced)};
}

NamesakeVerdict judge_namesakes(const RosterEntry& self, const RosterBook& book,
                                const RosterContacts& contacts) {
  const std::vector<RosterEntry> namesakes = book.find(self.name);
  const auto is_self = [&self](const RosterEntry& entry) { return is_same_process(entry, self); };
  if (std::ranges::none_of(namesakes, is_self)) {
    return {.kind = Namesakes::displaced};
  }
  if (namesakes.size() == 1) {
    return {};
  }
  NamesakeVerdict verdict{.replaces = self.replaces};
  std::vector<Incarnation>& replaces = verdict.replaces;
  for (const RosterEntry& other : namesakes) {
    const RosterContact* const contact = is_self(other) ? nullptr : contacts.find(other);
    if (contact == nullptr) {
      continue;
    }
    if (!contact->alive()) {
      // What is left of a process that is no more, as only this node can say. One that is named has
      // replaced this node, too, and is forgotten in time.
      if (std::ranges::find(replaces, other.incarnation) == replaces.end()) {
        replaces.insert(replaces.begin(), other.incarnation);
        replaces.resize(std::min(replaces.size(), kMostReplaced));
        verdict.kind = Namesakes::outlived;
      }
    } else if (contact->answered &&
               std::tie(other.life, other.incarnation) < std::tie(self.life, self.incarnation)) {
      verdict.kind = Namesakes::yields;
      return verdict;
    }
  }
  return verdict;
}

}  // namespace sotto::sites
