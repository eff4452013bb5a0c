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

constexpr RosterTime kCompareEvery{500};  // with one node

/// Messages of entries that are sent at once; what is left comes with the next answer.
constexpr std::size_t kMostAtOnce = 64;

std::uint64_t digest_of(std::string_view text) { return xxh3(std::as_bytes(std::span(text)), 0); }

std::uint16_t short_digest_of(std::string_view line) {
  return static_cast<std::uint16_t>(digest_of(line));
}

constexpr std::uint64_t kLastKey = std::numeric_limits<std::uint64_t>::max();

}  // namespace

Roster::Roster(RosterSetup setup, RosterTime now)
    : setup_(std::move(setup)),
      seeds_(setup_.seeds, setup_.address, now),
      joining_(setup_.awaits_seeds, now) {
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
    take(std::get<RosterEntries>(*parsed), now);
  }
  return {};
}

void Roster::say_other(const std::string& from, const RosterMessage& message) {
  const auto* const probe = std::get_if<RosterProbe>(&message);
  if (probe == nullptr || probe->answers) {
    return;
  }
  RosterOther answer{.run = run_,
                     .nonce = probe->nonce,
                     .up = static_cast<std::uint16_t>(count_up(processes_there()))};
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
                                      std::pair(count_up(processes_there()), run_)};
  if (!seeds_.note_other(other.nonce, found).value_or(false)) {
    return;
  }
  other_ = found;
  if (standing_ == RosterStanding::joining) {
    standing_ = RosterStanding::other;
  }
}

void Roster::take(const std::string& from, const RosterProbe& probe, RosterTime now) {
  if (probe.entry && is_self(*probe.entry)) {
    seeds_.note_own_probe(probe.nonce);
    return;  // this node, by another of its addresses
  }
  bool recalled = false;
  RosterContact* contact = nullptr;
  if (probe.entry) {
    recalled = learn(*probe.entry, true, now) == RosterBook::Outcome::recalled;
    contact = contacts_.find(*probe.entry);
  }
  if (!probe.answers) {
    if (contact != nullptr) {
      contact->note_claim(probe, now);
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
  if (contact != nullptr && contacts_.note_wishes(*contact, probe)) {
    choose_edges();
  }
  if (probe.forgot) {
    change_self(self_.phase);  // the others take a newer version back
  }
  const bool compared =
      contact != nullptr && contact->compared && now - *contact->compared < kCompareEvery;
  if (probe.digest != book_.digest() && !compared) {
    comparisons_.open(from, probe.ticket, now);
    send_marks(from, {.run = run_, .ticket = probe.ticket, .wants_yours = true, .last = kLastKey});
    if (contact != nullptr) {
      contact->compared = now;
    }
  }
}

bool Roster::note_answer(const RosterProbe& answer, RosterTime now) {
  const bool of_seed = seeds_.note_answer(answer.nonce);
  const bool of_contact = contacts_.note_answer(answer, now, [this] { return draw(); });
  const bool expected = of_seed || of_contact;
  if (expected && answer.entry) {
    joining_.note_answer(answer.digest == book_.digest());
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
  auto newer = encode_entries(run_, book_.newer_than(marks.marks, marks.first, marks.last));
  newer.resize(std::min(newer.size(), kMostAtOnce));
  for (std::vector<std::byte>& message : newer) {
    send(from, std::move(message));
  }
  if (marks.wants_yours && book_.lacks_any(marks.marks)) {
    send_marks(from,
               {.run = run_, .ticket = marks.ticket, .first = marks.first, .last = marks.last});
  }
}

void Roster::take(const RosterEntries& message, RosterTime now) {
  for (const RosterEntry& entry : message.entries) {
    (void)learn(entry, false, now);
  }
  if (standing_ == RosterStanding::joining) {
    seeds_.ask_all(now);  // is that all?
  }
}

RosterBook::Outcome Roster::learn(const RosterEntry& entry, bool by_itself, RosterTime now) {
  const std::size_t most = setup_.most + kMostBesides;
  if (book_.size() >= most && contacts_.find(entry) == nullptr && !is_self(entry)) {
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
  contacts_.follow(book_, self_, now);
  return outcome;
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
  send_probes(contacts_.due(now, [this] { return draw(); }));
  probe_seeds(now);
}

void Roster::try_join(RosterTime now) {
  JoinVerdict verdict = joining_.judge(self_.name, setup_.most, book_, contacts_, now);
  switch (verdict.kind) {
    case JoinVerdict::Kind::waits:
      return;
    case JoinVerdict::Kind::full:
      standing_ = RosterStanding::full;
      return;
    case JoinVerdict::Kind::duplicate:
      standing_ = RosterStanding::duplicate;
      return;
    case JoinVerdict::Kind::joins:
      self_.replaces = std::move(verdict.replaced);
      become_up(now);
      return;
  }
}

void Roster::become_up(RosterTime now) {
  standing_ = RosterStanding::up;
  self_.version = 1;
  (void)book_.merge(self_, true);
  contacts_.follow(book_, self_, now);
  contacts_.ask_all(now);
}

void Roster::look_at_namesakes(RosterTime now) {
  NamesakeVerdict verdict = judge_namesakes(self_, book_, contacts_);
  switch (verdict.kind) {
    case NamesakeVerdict::Kind::nothing:
      return;
    case NamesakeVerdict::Kind::outlived:
      self_.replaces = std::move(verdict.replaces);
      change_self(self_.phase);
      contacts_.follow(book_, self_, now);
      return;
    case NamesakeVerdict::Kind::yields:
      self_.replaces = std::move(verdict.replaces);
      end_as(RosterStanding::duplicate, NodePhase::gone, now);
      return;
    case NamesakeVerdict::Kind::displaced:
      standing_ = RosterStanding::duplicate;
      return;
  }
}

void Roster::change_self(NodePhase phase) {
  if (has_joined()) {
    self_.phase = phase;
    ++self_.version;
    (void)book_.merge(self_, true);
  }
}

void Roster::choose_edges() {
  contacts_.choose_edges({.name = self_.name,
                          .degree = setup_.degree,
                          .wishes = standing_ == RosterStanding::up,
                          .stays = standing_ == RosterStanding::leaving});
}

// Probes.

void Roster::send_probes(const std::vector<const RosterContact*>& due) {
  for (const RosterContact* contact : due) {
    RosterProbe message = probe_to(contact);
    message.nonce = contact->nonce;
    send(contact->address, encode(message));
  }
}

void Roster::probe_seeds(RosterTime now) {
  const bool joining = standing_ == RosterStanding::joining;
  const std::set<std::string> reached = joining ? std::set<std::string>() : contacts_.reached();
  const RosterSeeds::Pace pace = {.joining = joining,
                                  .below_least = reached.size() + 1 < setup_.least};
  for (const SeedProbe& due : seeds_.due(reached, pace, now, [this] { return draw(); })) {
    RosterProbe message = probe_to(nullptr);
    message.nonce = due.nonce;
    send(due.to, encode(message));
  }
}

RosterProbe Roster::probe_to(const RosterContact* contact) const {
  RosterProbe message{.run = run_, .digest = book_.digest()};
  message.wishes = contact != nullptr && contact->wished;
  message.takes = contact != nullptr && contact->mine;
  if (has_joined()) {
    message.entry = self_;
  }
  return message;
}

void Roster::forget_old(std::size_t most, RosterTime now) {
  for (const RosterContact* contact : contacts_.away()) {
    if (now - contact->since >= kForgetAfter || book_.size() > most) {
      book_.forget(contact->name, contact->incarnation);
    }
  }
  contacts_.follow(book_, self_, now);
}

void Roster::set_seeds(const std::vector<RosterSeed>& named, RosterTime now) {
  seeds_.set(named, now);
  joining_.note_seeds(now);
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
    contacts_.ask_all(now);
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
  send_probes(contacts_.part(now, [this] { return draw(); }));
}

bool Roster::is_there(const RosterEntry& entry) const {
  const RosterContact* const contact = contacts_.find(entry);
  return !is_gone(entry.phase) && (is_self(entry) || (contact != nullptr && !contact->suspected));
}

bool Roster::is_heard(const RosterEntry& entry) const {
  const RosterContact* const contact = contacts_.find(entry);
  return is_self(entry) || (contact != nullptr && contact->answered);
}

Roster::Processes Roster::processes_there() const {
  Processes processes;
  book_.for_each(
      [&](const RosterEntry& entry) { processes[entry.name] += is_there(entry) ? 1 : 0; });
  return processes;
}

std::size_t Roster::count_up(const Processes& processes) const {
  std::size_t up = 0;
  book_.for_each([&](const RosterEntry& entry) {
    if (entry.phase == NodePhase::up && is_heard(entry) && is_there(entry) &&
        processes.at(entry.name) <= 1) {
      ++up;
    }
  });
  return up;
}

RosterView Roster::view() const {
  RosterView view{.standing = standing_};
  view.other = other_;
  const Processes processes = processes_there();
  view.up = count_up(processes);
  book_.for_each([&](const RosterEntry& entry) {
    const RosterContact* const contact = contacts_.find(entry);
    RosterMember member{.entry = entry};
    member.heard = is_heard(entry);
    member.suspected = !is_self(entry) && contact != nullptr && contact->suspected;
    member.conflict = processes.at(entry.name) > 1;
    member.neighbour = contact != nullptr && contact->mine && contact->takes;
    // One that has never answered this process may be of an earlier run.
    view.over |= contact != nullptr && contact->answered && entry.phase == NodePhase::ended;
    view.members.push_back(std::move(member));
  });
  view.strangers = seeds_.strangers();
  view.asked = seeds_.asked();
  view.silent = seeds_.silent();
  return view;
}

}  // namespace sotto::sites
