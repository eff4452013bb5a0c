#include <sotto/sites/roster/roster_contacts.h>

#include <algorithm>
#include <utility>

#include <sotto/sites/roster/roster_graph.h>

namespace sotto::sites {
namespace {

constexpr std::uint8_t kWishFlag = 1;
constexpr std::uint8_t kTakeFlag = 2;
/// Bits of a nonce that hold the flags of its probe, so that an answer says which have arrived.
constexpr std::uint64_t kFlagBits = kWishFlag | kTakeFlag;

constexpr RosterTime kProbeNeighbours{1'000};
constexpr RosterTime kProbeAgain{1'000};   // one that has not answered
constexpr RosterTime kProbeOthers{8'000};  // each, unless there are more than kOthersInPeriod
constexpr std::size_t kOthersInPeriod = 64;

std::uint8_t flags_for(const RosterContact& contact) {
  return static_cast<std::uint8_t>((contact.wished ? kWishFlag : 0) |
                                   (contact.mine ? kTakeFlag : 0));
}

/// Whether the answer is to the probes of the contact that have none yet.
bool is_answered_by(const RosterContact& contact, const RosterProbe& answer) {
  return contact.asked && (contact.nonce | kFlagBits) == (answer.nonce | kFlagBits);
}

/// A probe is about to go to the contact.
void begin_probe(RosterContact& contact, RosterTime now, const RosterContacts::Draw& draw) {
  contact.telling = flags_for(contact);
  if (!contact.asked) {
    contact.asked = now;
    contact.nonce = draw();
  }
  contact.nonce = (contact.nonce & ~kFlagBits) | contact.telling;
  if (contact.suspected) {
    contact.pause = std::clamp(2 * contact.pause, kProbeAgain, RosterContacts::kLongestBackOff);
  }
  contact.next = now + (contact.suspected ? contact.pause : kProbeAgain);
}

}  // namespace

void RosterContact::note_claim(const RosterProbe& probe, RosterTime now) {
  const bool differs = wishes != probe.wishes || takes != probe.takes;
  if (suspected || (differs && !asked)) {
    next = std::min(next, now);
  }
  doubted = differs && asked;
}

// The nodes that are there.

void RosterContacts::follow(const RosterBook& book, const RosterEntry& self, RosterTime now) {
  if (std::exchange(followed_, book.revision()) == book.revision()) {
    return;
  }
  edges_due_ = true;
  std::set<std::uint64_t> there;
  book.for_each([&](const RosterEntry& entry) {
    if (is_same_process(entry, self)) {
      return;
    }
    const std::uint64_t key = key_of(entry.name, entry.incarnation);
    there.insert(key);
    const auto [found, fresh] = contacts_.try_emplace(key);
    RosterContact& contact = found->second;
    if (fresh) {
      contact.name = entry.name;
      contact.incarnation = entry.incarnation;
      contact.next = now;
    }
    contact.address = entry.address;
    if (is_gone(entry.phase) && !is_gone(contact.phase)) {
      contact.since = now;
    }
    contact.phase = entry.phase;
  });
  std::erase_if(contacts_, [&](const auto& one) { return !there.contains(one.first); });
}

RosterContact* RosterContacts::find(const RosterEntry& entry) {
  const auto found = contacts_.find(key_of(entry.name, entry.incarnation));
  return found == contacts_.end() ? nullptr : &found->second;
}

const RosterContact* RosterContacts::find(const RosterEntry& entry) const {
  const auto found = contacts_.find(key_of(entry.name, entry.incarnation));
  return found == contacts_.end() ? nullptr : &found->second;
}

std::set<std::string> RosterContacts::reached() const {
  std::set<std::string> reached;
  for (const auto& [key, contact] : contacts_) {
    if (contact.answered && contact.alive()) {
      reached.insert(contact.address);
    }
  }
  return reached;
}

std::vector<const RosterContact*> RosterContacts::away() const {
  std::vector<const RosterContact*> away;
  for (const auto& [key, contact] : contacts_) {
    if (!contact.alive()) {
      away.push_back(&contact);
    }
  }
  std::ranges::stable_sort(away, {}, &RosterContact::since);
  return away;
}

// Probes.

void RosterContacts::ask_all(RosterTime now) {
  for (auto& [key, contact] : contacts_) {
    contact.next = std::min(contact.next, now);
  }
}

std::vector<const RosterContact*> RosterContacts::due(RosterTime now, const Draw& draw) {
  std::vector<const RosterContact*> due;
  for (auto& [key, contact] : contacts_) {
    if (contact.asked && !contact.suspected && now - *contact.asked >= kSuspectAfter) {
      contact.suspected = true;
      contact.since = now;
      contact.mine = contact.wished = contact.wishes = contact.takes = false;
      edges_due_ = true;
    }
    if (!is_gone(contact.phase) && now >= contact.next) {
      begin_probe(contact, now, draw);
      due.push_back(&contact);
    }
  }
  return due;
}

RosterTime RosterContacts::period_of(const RosterContact& contact, const Draw& draw) const {
  const auto crowd = std::max<std::size_t>(contacts_.size(), kOthersInPeriod);
  const RosterTime::rep others = kProbeOthers.count() * static_cast<RosterTime::rep>(crowd) /
                                 static_cast<RosterTime::rep>(kOthersInPeriod);
  const RosterTime::rep period = contact.mine ? kProbeNeighbours.count() : others;
  return RosterTime(period -
                    static_cast<RosterTime::rep>(draw() % static_cast<std::uint64_t>(period / 4)));
}

bool RosterContacts::note_answer(const RosterProbe& answer, RosterTime now, const Draw& draw) {
  RosterContact* const contact = answer.entry ? find(*answer.entry) : nullptr;
  if (contact == nullptr || !is_answered_by(*contact, answer)) {
    return false;
  }
  edges_due_ = edges_due_ || contact->suspected;
  contact->asked.reset();
  contact->answered = true;
  contact->suspected = false;
  contact->pause = RosterTime(0);
  const bool knows = (answer.nonce & kFlagBits) == flags_for(*contact);
  // The answer may be from before what an unasked probe said.
  const bool settled = knows && !std::exchange(contact->doubted, false);
  contact->next = settled ? now + period_of(*contact, draw) : now;
  return true;
}

// Edges.

bool RosterContacts::note_wishes(RosterContact& contact, const RosterProbe& answer) {
  if (contact.wishes == answer.wishes && contact.takes == answer.takes) {
    return false;
  }
  contact.wishes = answer.wishes;
  contact.takes = answer.takes;
  edges_due_ = true;
  return true;
}

std::map<std::string, RosterContact*> RosterContacts::candidates(const std::string& self) {
  std::map<std::string, RosterContact*> found;
  std::set<std::string> twice;
  for (auto& [key, contact] : contacts_) {
    const bool there = contact.phase == NodePhase::up && !contact.suspected;
    if (there && contact.name != self && !found.try_emplace(contact.name, &contact).second) {
      twice.insert(contact.name);
    }
  }
  for (const std::string& name : twice) {
    found.erase(name);
  }
  return found;
}

void RosterContacts::choose_edges(const EdgeTerms& terms) {
  if (!std::exchange(edges_due_, false)) {
    return;
  }
  std::set<const RosterContact*> wished;
  std::set<const RosterContact*> mine;
  if (terms.wishes) {
    const std::map<std::string, RosterContact*> there = candidates(terms.name);
    std::vector<std::string> names;
    std::vector<std::pair<std::uint64_t, const RosterContact*>> asked;
    for (const auto& [name, contact] : there) {
      names.push_back(name);
      if (contact->wishes) {
        asked.emplace_back(edge_weight(terms.name, name), contact);
      }
    }
    for (const std::string& name : wished_neighbours(terms.name, names, terms.degree)) {
      wished.insert(there.at(name));
    }
    mine = wished;
    std::ranges::sort(asked);
    for (const auto& [weight, contact] : asked) {
      if (mine.size() < 2 * terms.degree) {
        mine.insert(contact);
      }
    }
  }
  for (auto& [key, contact] : contacts_) {
    // One that leaves keeps the edges that it has.
    const bool stays =
        contact.mine && contact.alive() && (contact.phase == NodePhase::leaving || terms.stays);
    contact.wished = wished.contains(&contact);
    contact.mine = mine.contains(&contact) || stays;
    if (flags_for(contact) != contact.telling && !contact.suspected) {
      contact.next = RosterTime::min();  // it is told at once
    }
  }
}

std::vector<const RosterContact*> RosterContacts::part(RosterTime now, const Draw& draw) {
  std::vector<const RosterContact*> told;
  for (auto& [key, contact] : contacts_) {
    contact.mine = contact.wished = false;
    if (contact.alive()) {
      begin_probe(contact, now, draw);
      told.push_back(&contact);
    }
  }
  return told;
}

}  // namespace sotto::sites
