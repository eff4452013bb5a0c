// The other nodes of a run, as one knows them by what it hears itself.
#include <sotto/sites/roster/roster_contacts.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace sotto::test::roster_contacts_test {

using namespace std::chrono_literals;
using namespace sotto::sites;

namespace {

RosterEntry entry_of(const std::string& name, Incarnation incarnation) {
  return {.name = name, .incarnation = incarnation, .life = 1, .version = 1, .address = name};
}

/// The contacts of `me`, and a book of it and of some others.
struct Contacts {
  explicit Contacts(const std::vector<RosterEntry>& others) {
    (void)book.merge(self);
    for (const RosterEntry& entry : others) {
      (void)book.merge(entry);
    }
    contacts.follow(book, self, 0ms);
  }
  std::vector<const RosterContact*> due(RosterTime now) {
    return contacts.due(now, [this] { return drawn += 16; });
  }
  /// An answer to the latest probe of the node.
  bool answer(const RosterEntry& entry, RosterTime now, bool wishes = false) {
    const RosterProbe answer{
        .answers = true, .nonce = at(entry).nonce, .wishes = wishes, .entry = entry};
    const bool expected = contacts.note_answer(answer, now, [this] { return drawn += 16; });
    (void)contacts.note_wishes(at(entry), answer);
    return expected;
  }
  void choose_edges(bool up) {
    contacts.choose_edges({.name = self.name, .degree = 2, .wishes = up, .stays = !up});
  }
  RosterContact& at(const RosterEntry& entry) { return *contacts.find(entry); }

  RosterEntry self = entry_of("me", 1);
  RosterBook book;
  RosterContacts contacts;
  std::uint64_t drawn = 0;
};

}  // namespace

TEST_CASE("roster contacts: there is one for each entry of the book but this node's") {
  const RosterEntry a = entry_of("a", 2);
  const RosterEntry b = entry_of("b", 3);
  Contacts known({a, b});
  CHECK(known.contacts.all().size() == 2);
  CHECK(known.contacts.find(known.self) == nullptr);
  known.book.forget("a", 2);
  known.contacts.follow(known.book, known.self, 1ms);
  CHECK(known.contacts.find(a) == nullptr);
  CHECK(known.at(b).address == "b");
}

TEST_CASE("roster contacts: one that does not answer is suspected, until it does") {
  const RosterEntry a = entry_of("a", 2);
  Contacts known({a});
  CHECK(known.due(0ms).size() == 1);
  CHECK(known.due(500ms).empty());
  const std::uint64_t nonce = known.at(a).nonce;
  CHECK(known.due(RosterContacts::kSuspectAfter - 1ms).size() == 1);
  CHECK(known.at(a).nonce == nonce);  // all its probes since the first have one number
  CHECK(known.at(a).alive());
  (void)known.due(RosterContacts::kSuspectAfter);
  CHECK_FALSE(known.at(a).alive());
  CHECK(known.contacts.away().size() == 1);
  CHECK(known.contacts.reached().empty());

  CHECK(known.answer(a, 7s));
  CHECK_FALSE(known.answer(a, 7s));  // once
  CHECK(known.at(a).alive());
  CHECK(known.contacts.reached().contains("a"));
  CHECK(known.contacts.away().empty());
}

TEST_CASE("roster contacts: an answer to another probe is none, and a claim is asked for") {
  const RosterEntry a = entry_of("a", 2);
  Contacts known({a});
  (void)known.due(0ms);
  const RosterProbe old{.answers = true, .nonce = 8, .entry = a};
  CHECK_FALSE(known.contacts.note_answer(old, 0ms, [] { return std::uint64_t{0}; }));
  CHECK(known.answer(a, 0ms));
  CHECK(known.at(a).next > 1s);
  known.at(a).note_claim({.wishes = true}, 100ms);
  CHECK_FALSE(known.at(a).wishes);
  CHECK(known.at(a).next == 100ms);
}

TEST_CASE("roster contacts: edges are told at once, kept by one that leaves, and given up") {
  const RosterEntry a = entry_of("a", 2);
  Contacts known({a});
  (void)known.due(0ms);
  CHECK(known.answer(a, 0ms));
  known.choose_edges(true);
  CHECK(known.at(a).wished);
  CHECK(known.at(a).mine);
  CHECK(known.due(1ms).size() == 1);

  CHECK(known.answer(a, 2ms, true));
  known.choose_edges(false);  // this node leaves
  CHECK_FALSE(known.at(a).wished);
  CHECK(known.at(a).mine);

  const auto told = known.contacts.part(3ms, [] { return std::uint64_t{64}; });
  CHECK(told.size() == 1);
  CHECK_FALSE(known.at(a).mine);
}

TEST_CASE("roster contacts: no edge is made with a name that two processes have") {
  const RosterEntry a = entry_of("a", 2);
  const RosterEntry twin = entry_of("a", 3);
  Contacts known({a, twin});
  known.choose_edges(true);
  CHECK_FALSE(known.at(a).mine);
  CHECK_FALSE(known.at(twin).mine);
}

}  // namespace sotto::test::roster_contacts_test
