#include <sotto/sites/roster/roster.h>

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/xxh3.h>

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
constexpr RosterTime kCompareEvery{500};  // with one node

constexpr std::size_t kMostNewsAtOnce = 64;  // datagrams; what is left comes with the next answer

std::uint64_t digest_of(std::string_view text) { return xxh3(std::as_bytes(std::span(text)), 0); }

std::uint16_t short_digest_of(std::string_view line) {
  return static_cast<std::uint16_t>(digest_of(line));
}

constexpr std::uint64_t kLastKey = std::numeric_limits<std::uint64_t>::max();

}  // namespace

Roster::Roster(RosterSetup setup, RosterTime now)
    : setup_(std::move(setup)), seeds_(setup_.seeds, setup_.address, now), began_(now) {
  if (setup_.name.empty() || setup_.name.size() > kMostRosterName ||
      one_line(setup_.name) != setup_.name) {
    refuse("name", setup_.name,
           fmt::format("a node's name has 1 … {} printable bytes", kMostRosterName));
  }
  if (setup_.address.empty() || setup_.address.size() > kMostRosterAddress) {
    refuse("listen", setup_.address,
           fmt::format("a node's address has 1 … {} bytes", kMostRosterAddress));
  }
  if (setup_.least < 1 || setup_.least > setup_.most) {
    refuse("nodes", fmt::format("{}:{}", setup_.least, setup_.most),
           "MIN:MAX, with one node at least, and MIN at most MAX");
  }
  check(setup_.incarnation != 0 && setup_.degree >= 2, "an incarnation is drawn; a ring has two");
  for (std::string_view left = setup_.settings; !left.empty();) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(line.size() + 1, left.size()));
    settings_.emplace_back(line);
  }
  if (settings_.size() > kMostSettings) {
    refuse("settings", fmt::format("{} lines", settings_.size()),
           fmt::format("at most {}", kMostSettings));
  }
  run_ = setup_.settings.empty() ? 0 : digest_of(setup_.settings);
  self_ = {.name = setup_.name,
           .incarnation = setup_.incarnation,
           .life = setup_.life,
           .address = setup_.address};
  if (!setup_.awaits_seeds) {
    look_for_anybody(now);
  }
}

void Roster::send(const std::string& to, std::vector<std::byte> message) {
  outbox_.push_back({.to = to, .message = std::move(message)});
}

std::vector<RosterDatagram> Roster::released() { return std::exchange(outbox_, {}); }

// What comes.

Status Roster::receive(const std::string& from, std::span<const std::byte> message,
                       RosterTime now) {
  const auto parsed = parse_roster(message);
  if (!parsed.ok()) {
    return parsed.status().with_context(from);
  }
  const auto run = std::visit([](const auto& one) { return one.run; }, *parsed);
  if (const auto* other = std::get_if<RosterOther>(&*parsed)) {
    take(from, *other);
  } else if (run != run_) {
    say_other(from, *parsed);
  } else if (const auto* probe = std::get_if<RosterProbe>(&*parsed)) {
    take(from, *probe, now);
  } else if (const auto* marks = std::get_if<RosterMarks>(&*parsed)) {
    take(from, *marks, now);
  } else {
    take(std::get<RosterNews>(*parsed), now);
  }
  return {};
}

void Roster::say_other(const std::string& from, const RosterMessage& message) {
  const auto* const probe = std::get_if<RosterProbe>(&message);
  if (probe == nullptr || probe->answers) {
    return;
  }
  RosterOther answer{
      .run = run_, .nonce = probe->nonce, .up = static_cast<std::uint16_t>(view().up)};
  for (const std::string& line : settings_) {
    answer.settings.push_back(short_digest_of(line));
  }
  send(from, encode(answer));
}

void Roster::take(const std::string& from, const RosterOther& other) {
  if (other.run == run_) {
    return;
  }
  std::size_t same = 0;
  while (same < std::min(settings_.size(), other.settings.size()) &&
         short_digest_of(settings_[same]) == other.settings[same]) {
    ++same;
  }
  const OtherRun found{.address = from,
                       .line = same < settings_.size() ? settings_[same] : "",
                       .goes_before = std::pair<std::size_t, std::uint64_t>(other.up, other.run) >
                                      std::pair(view().up, run_)};
  if (!seeds_.note_other(other.nonce, found).value_or(false)) {
    return;
  }
  other_ = found;
  if (standing_ == RosterStanding::joining) {
    standing_ = RosterStanding::other;
  }
}

void Roster::take(const std::string& from, const RosterProbe& probe, RosterTime now) {
  if (!probe.entry.empty() && is_self(probe.entry[0])) {
    seeds_.note_own_probe(probe.nonce);
    return;  // this node, by another of its addresses
  }
  bool recalled = false;
  Contact* contact = nullptr;
  for (const RosterEntry& entry : probe.entry) {
    recalled = learn(entry, true, now) == RosterBook::Outcome::recalled;
    contact = contact_of(entry);
  }
  if (!probe.answers) {
    if (contact != nullptr) {
      note_claim(*contact, probe, now);
    }
    RosterProbe answer = probe_to(contact);
    answer.answers = true;
    answer.nonce = probe.nonce;
    answer.ticket = draw();
    answer.forgot = recalled;
    comparisons_.open(from, answer.ticket, now);
    send(from, encode(answer));
    return;
  }
  if (!note_answer(probe, now)) {
    return;
  }
  if (contact != nullptr && (contact->wishes != probe.wishes || contact->takes != probe.takes)) {
    contact->wishes = probe.wishes;
    contact->takes = probe.takes;
    edges_due_ = true;
    choose_edges();
  }
  if (probe.forgot) {
    change_self(self_.phase);  // the others take a newer version back
  }
  const bool compared = contact != nullptr && now - contact->compared < kCompareEvery;
  if (probe.digest != book_.digest() && !compared) {
    comparisons_.open(from, probe.ticket, now);
    send_marks(from, {.run = run_, .ticket = probe.ticket, .wants_yours = true, .last = kLastKey});
    if (contact != nullptr) {
      contact->compared = now;
    }
  }
}

void Roster::note_claim(Contact& contact, const RosterProbe& probe, RosterTime now) {
  const bool differs = contact.wishes != probe.wishes || contact.takes != probe.takes;
  if (contact.suspected || (differs && !contact.asked)) {
    contact.next = std::min(contact.next, now);
  }
  contact.doubted = differs && contact.asked;
}

bool Roster::note_answer(const RosterProbe& answer, RosterTime now) {
  bool expected = seeds_.note_answer(answer.nonce);
  for (const RosterEntry& entry : answer.entry) {
    Contact* const contact = contact_of(entry);
    if (contact != nullptr && contact->asked &&
        (contact->nonce | kFlagBits) == (answer.nonce | kFlagBits)) {
      edges_due_ = edges_due_ || contact->suspected;
      contact->nonce = 0;
      contact->asked.reset();
      contact->answered = true;
      contact->suspected = false;
      contact->pause = RosterTime(0);
      const bool knows = (answer.nonce & kFlagBits) == flags_for(*contact);
      // The answer may be from before what an unasked probe said.
      const bool settled = knows && !std::exchange(contact->doubted, false);
      contact->next = settled ? now + period_of(*contact) : now;
      expected = true;
    }
  }
  if (expected && !answer.entry.empty()) {
    heard_ = true;
    equal_ = equal_ || answer.digest == book_.digest();
  }
  return expected;
}

void Roster::send_marks(const std::string& to, const RosterMarks& wanted) {
  for (const RosterMarks& marks : marks_in_range(book_, wanted)) {
    send(to, encode(marks));
  }
}

void Roster::take(const std::string& from, const RosterMarks& marks, RosterTime now) {
  if (!comparisons_.admit(from, marks, now)) {
    return;
  }
  auto news = encode_news(run_, book_.newer_than(marks.marks, marks.first, marks.last));
  news.resize(std::min(news.size(), kMostNewsAtOnce));
  for (std::vector<std::byte>& message : news) {
    send(from, std::move(message));
  }
  if (marks.wants_yours && book_.lacks_any(marks.marks)) {
    send_marks(from,
               {.run = run_, .ticket = marks.ticket, .first = marks.first, .last = marks.last});
  }
}

void Roster::take(const RosterNews& news, RosterTime now) {
  for (const RosterEntry& entry : news.entries) {
    (void)learn(entry, false, now);
  }
  if (standing_ == RosterStanding::joining) {
    seeds_.ask_all(now);  // is that all?
  }
}

RosterBook::Outcome Roster::learn(const RosterEntry& entry, bool by_itself, RosterTime now) {
  const std::size_t most = setup_.most + kMostBesides;
  if (book_.size() >= most && contact_of(entry) == nullptr && !is_self(entry)) {
    forget_old(most - 1, now);
    if (book_.size() >= most) {
      return RosterBook::Outcome::forgotten;
    }
  }
  const RosterBook::Outcome outcome = book_.merge(entry, by_itself);
  if (is_self(entry) && has_joined() && self_ != entry &&
      std::tie(entry.life, entry.version) >= std::tie(self_.life, self_.version)) {
    self_.version = entry.version;  // nobody else may write it: the own word is to be the last
    change_self(self_.phase);
  }
  follow_book(now);
  return outcome;
}

void Roster::follow_book(RosterTime now) {
  if (std::exchange(followed_, book_.revision()) == book_.revision()) {
    return;
  }
  edges_due_ = true;
  std::set<std::uint64_t> there;
  book_.for_each([&](const RosterEntry& entry) {
    if (is_self(entry)) {
      return;
    }
    const std::uint64_t key = key_of(entry.name, entry.incarnation);
    there.insert(key);
    const auto [found, fresh] = contacts_.try_emplace(key);
    Contact& contact = found->second;
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

// What is due.

void Roster::tick(RosterTime now) {
  if (standing_ == RosterStanding::joining) {
    try_join(now);
  } else if (standing_ == RosterStanding::up || standing_ == RosterStanding::leaving) {
    look_at_namesakes(now);
  }
  if (is_gone(self_.phase)) {
    return;
  }
  forget_old(setup_.most + kMostBesides, now);
  choose_edges();
  probe_due(now);
  probe_seeds(now);
}

void Roster::try_join(RosterTime now) {
  const bool late = now - began_ >= kAloneAfter;
  if (setup_.awaits_seeds || (!late && !(heard_ && equal_))) {
    return;
  }
  std::vector<Incarnation> replaced;
  for (const RosterEntry& namesake : book_.find(self_.name)) {
    const Contact* const contact = contact_of(namesake);
    const bool over = is_gone(namesake.phase);
    if (!over && contact != nullptr && contact->answered) {
      standing_ = RosterStanding::duplicate;
      return;
    }
    const bool silent =
        contact != nullptr && contact->asked && now - *contact->asked >= kAloneAfter;
    if (!over && !silent) {
      return;  // it is asked, and may answer
    }
    replaced.push_back(namesake.incarnation);
    replaced.insert(replaced.end(), namesake.replaces.begin(), namesake.replaces.end());
  }
  std::size_t answer = 0;
  std::size_t may_answer = 0;  // those that others list may be dead
  for (const auto& [key, contact] : contacts_) {
    if (contact.phase != NodePhase::up || contact.name == self_.name || contact.suspected) {
      continue;
    }
    if (contact.answered) {
      ++answer;
    } else if (!contact.asked || now - *contact.asked < kAnswersWithin) {
      ++may_answer;
    }
  }
  if (answer >= setup_.most) {
    standing_ = RosterStanding::full;
    return;
  }
  if (answer + may_answer >= setup_.most) {
    return;
  }
  replaced.resize(std::min(replaced.size(), kMostReplaced));
  self_.replaces = std::move(replaced);
  become_up(now);
}

void Roster::become_up(RosterTime now) {
  standing_ = RosterStanding::up;
  self_.version = 1;
  (void)book_.merge(self_, true);
  follow_book(now);
  for (auto& [key, contact] : contacts_) {
    contact.next = now;
  }
}

void Roster::look_at_namesakes(RosterTime now) {
  const std::vector<RosterEntry> namesakes = book_.find(self_.name);
  if (namesakes.size() == 1 && is_self(namesakes[0])) {
    return;
  }
  if (std::ranges::none_of(namesakes, [this](const auto& entry) { return is_self(entry); })) {
    standing_ = RosterStanding::duplicate;  // another has taken its place
    return;
  }
  bool changed = false;
  for (const RosterEntry& other : namesakes) {
    const Contact* const contact = is_self(other) ? nullptr : contact_of(other);
    if (contact == nullptr) {
      continue;
    }
    const bool known = std::ranges::find(self_.replaces, other.incarnation) != self_.replaces.end();
    if (contact->suspected || is_gone(other.phase)) {
      if (known) {
        continue;  // it has replaced this one, too, and is forgotten in time
      }
      // What is left of a process that is no more, as only this node can say.
      self_.replaces.insert(self_.replaces.begin(), other.incarnation);
      self_.replaces.resize(std::min(self_.replaces.size(), kMostReplaced));
      changed = true;
    } else if (contact->answered &&
               std::tie(other.life, other.incarnation) < std::tie(self_.life, self_.incarnation)) {
      end_as(RosterStanding::duplicate, NodePhase::gone, now);  // the younger one stops
      return;
    }
  }
  if (changed) {
    change_self(self_.phase);
    follow_book(now);
  }
}

void Roster::change_self(NodePhase phase) {
  if (has_joined()) {
    self_.phase = phase;
    ++self_.version;
    (void)book_.merge(self_, true);
  }
}

Roster::Contact* Roster::contact_of(const RosterEntry& entry) {
  const auto found = contacts_.find(key_of(entry.name, entry.incarnation));
  return found == contacts_.end() ? nullptr : &found->second;
}

const Roster::Contact* Roster::contact_of(const RosterEntry& entry) const {
  const auto found = contacts_.find(key_of(entry.name, entry.incarnation));
  return found == contacts_.end() ? nullptr : &found->second;
}

// Edges.

std::map<std::string, Roster::Contact*> Roster::candidates() {
  std::map<std::string, Contact*> found;
  std::set<std::string> twice;
  for (auto& [key, contact] : contacts_) {
    const bool there = contact.phase == NodePhase::up && !contact.suspected;
    if (there && contact.name != self_.name && !found.try_emplace(contact.name, &contact).second) {
      twice.insert(contact.name);
    }
  }
  for (const std::string& name : twice) {
    found.erase(name);
  }
  return found;
}

void Roster::choose_edges() {
  if (!std::exchange(edges_due_, false)) {
    return;
  }
  const std::map<std::string, Contact*> there = candidates();
  std::set<const Contact*> wished;
  std::set<const Contact*> mine;
  if (standing_ == RosterStanding::up) {
    std::vector<std::string> names;
    std::vector<std::pair<std::uint64_t, const Contact*>> asked;
    for (const auto& [name, contact] : there) {
      names.push_back(name);
      if (contact->wishes) {
        asked.emplace_back(edge_weight(self_.name, name), contact);
      }
    }
    for (const std::string& name : wished_neighbours(self_.name, names, setup_.degree)) {
      wished.insert(there.at(name));
    }
    mine = wished;
    std::ranges::sort(asked);
    for (const auto& [weight, contact] : asked) {
      if (mine.size() < 2 * setup_.degree) {
        mine.insert(contact);
      }
    }
  }
  for (auto& [key, contact] : contacts_) {
    // One that leaves keeps the edges that it has.
    const bool stays =
        contact.mine && !contact.suspected && !is_gone(contact.phase) &&
        (contact.phase == NodePhase::leaving || standing_ == RosterStanding::leaving);
    contact.wished = wished.contains(&contact);
    contact.mine = mine.contains(&contact) || stays;
    if (flags_for(contact) != contact.telling && !contact.suspected) {
      contact.next = RosterTime::min();  // it is told at once
    }
  }
}

std::uint8_t Roster::flags_for(const Contact& contact) {
  return static_cast<std::uint8_t>((contact.wished ? kWishFlag : 0) |
                                   (contact.mine ? kTakeFlag : 0));
}

// Probes.

RosterTime Roster::period_of(const Contact& contact) {
  const auto crowd = std::max<std::size_t>(contacts_.size(), kOthersInPeriod);
  const RosterTime::rep others = kProbeOthers.count() * static_cast<RosterTime::rep>(crowd) /
                                 static_cast<RosterTime::rep>(kOthersInPeriod);
  const RosterTime::rep period = contact.mine ? kProbeNeighbours.count() : others;
  return RosterTime(period -
                    static_cast<RosterTime::rep>(draw() % static_cast<std::uint64_t>(period / 4)));
}

void Roster::probe_due(RosterTime now) {
  for (auto& [key, contact] : contacts_) {
    if (contact.asked && !contact.suspected && now - *contact.asked >= kSuspectAfter) {
      contact.suspected = true;
      contact.since = now;
      contact.mine = contact.wished = contact.wishes = contact.takes = false;
      edges_due_ = true;
    }
    if (!is_gone(contact.phase) && now >= contact.next) {
      probe(contact, now);
    }
  }
}

void Roster::probe(Contact& contact, RosterTime now) {
  contact.telling = flags_for(contact);
  if (!contact.asked) {
    contact.asked = now;
    contact.nonce = draw();
  }
  contact.nonce = (contact.nonce & ~kFlagBits) | contact.telling;
  if (contact.suspected) {
    contact.pause = std::clamp(2 * contact.pause, kProbeAgain, kLongestBackOff);
  }
  contact.next = now + (contact.suspected ? contact.pause : kProbeAgain);
  RosterProbe message = probe_to(&contact);
  message.nonce = contact.nonce;
  send(contact.address, encode(message));
}

void Roster::probe_seeds(RosterTime now) {
  std::set<std::string> reached;
  for (const auto& [key, contact] : contacts_) {
    const bool there = contact.answered && !contact.suspected && !is_gone(contact.phase);
    if (there && standing_ != RosterStanding::joining) {
      reached.insert(contact.address);
    }
  }
  const RosterSeeds::Pace pace = {.joining = standing_ == RosterStanding::joining,
                                  .below_least = reached.size() + 1 < setup_.least};
  for (const SeedProbe& due : seeds_.due(reached, pace, now, [this] { return draw(); })) {
    RosterProbe message = probe_to(nullptr);
    message.nonce = due.nonce;
    send(due.to, encode(message));
  }
}

RosterProbe Roster::probe_to(const Contact* contact) const {
  RosterProbe message{.run = run_, .digest = book_.digest()};
  message.wishes = contact != nullptr && contact->wished;
  message.takes = contact != nullptr && contact->mine;
  if (has_joined()) {
    message.entry.push_back(self_);
  }
  return message;
}

void Roster::forget_old(std::size_t most, RosterTime now) {
  std::vector<std::pair<RosterTime, const Contact*>> old;
  for (const auto& [key, contact] : contacts_) {
    if (is_gone(contact.phase) || contact.suspected) {
      old.emplace_back(contact.since, &contact);
    }
  }
  std::ranges::sort(old);
  for (const auto& [since, contact] : old) {
    if (now - since >= kForgetAfter || book_.size() > most) {
      book_.forget(contact->name, contact->incarnation);
    }
  }
  follow_book(now);
}

void Roster::set_seeds(const std::vector<RosterSeed>& named, RosterTime now) {
  seeds_.set(named, now);
  if (std::exchange(setup_.awaits_seeds, false)) {
    began_ = now;  // they are asked from now on
  }
  look_for_anybody(now);
}

void Roster::note_own_seed(const std::string& address, RosterTime now) {
  seeds_.note_own(address);
  look_for_anybody(now);
}

void Roster::look_for_anybody(RosterTime now) {
  if (standing_ == RosterStanding::joining && seeds_.nobody()) {
    become_up(now);
  }
}

// Leaving.

void Roster::leave(RosterTime now) {
  if (standing_ == RosterStanding::up) {
    standing_ = RosterStanding::leaving;
    change_self(NodePhase::leaving);
    for (auto& [key, contact] : contacts_) {
      contact.next = std::min(contact.next, now);
    }
  }
}

void Roster::depart(RosterTime now, bool run_is_over) {
  if (standing_ == RosterStanding::up || standing_ == RosterStanding::leaving) {
    end_as(RosterStanding::gone, run_is_over ? NodePhase::ended : NodePhase::gone, now);
  }
}

void Roster::end_as(RosterStanding standing, NodePhase phase, RosterTime now) {
  standing_ = standing;
  change_self(phase);
  for (auto& [key, contact] : contacts_) {
    contact.mine = contact.wished = false;
    if (!is_gone(contact.phase) && !contact.suspected) {
      probe(contact, now);
    }
  }
}

RosterView Roster::view() const {
  RosterView view{.standing = standing_};
  view.other = other_;
  std::map<std::string_view, int> processes;
  const auto there = [this](const RosterEntry& entry) {
    const Contact* const contact = contact_of(entry);
    return !is_gone(entry.phase) && (is_self(entry) || (contact != nullptr && !contact->suspected));
  };
  book_.for_each([&](const RosterEntry& entry) { processes[entry.name] += there(entry) ? 1 : 0; });
  book_.for_each([&](const RosterEntry& entry) {
    const Contact* const contact = contact_of(entry);
    RosterMember member{.entry = entry};
    const bool heard = is_self(entry) || (contact != nullptr && contact->answered);
    member.heard = heard;
    member.suspected = !is_self(entry) && contact != nullptr && contact->suspected;
    member.conflict = processes[entry.name] > 1;
    member.neighbour = contact != nullptr && contact->mine && contact->takes;
    // One that has never answered this process may be of an earlier run.
    view.over |= contact != nullptr && contact->answered && entry.phase == NodePhase::ended;
    if (entry.phase == NodePhase::up && heard && there(entry) && !member.conflict) {
      ++view.up;
    }
    view.members.push_back(std::move(member));
  });
  view.strangers = seeds_.strangers();
  view.asked = seeds_.asked();
  view.silent = seeds_.silent();
  return view;
}

}  // namespace sotto::sites
