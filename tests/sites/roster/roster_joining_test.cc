// Whether a node that asks may take part, and what other processes of its name mean for it.
#include <sotto/sites/roster/roster_joining.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace sotto::test::roster_joining_test {

using namespace std::chrono_literals;
using namespace sotto::sites;
using Join = JoinVerdict::Kind;
using Namesakes = NamesakeVerdict::Kind;

namespace {

RosterEntry entry_of(const std::string& name, Incarnation incarnation, std::uint32_t life = 1) {
  return {.name = name, .incarnation = incarnation, .life = life, .version = 1, .address = "a:1"};
}

/// What a node knows that is called "me" and asks who is there, since time 0.
struct Newcomer {
  void learn(const RosterEntry& entry) {
    (void)book.merge(entry);
    contacts.follow(book, self, 0ms);
  }
  /// All contacts are probed.
  void ask(RosterTime now) {
    (void)contacts.due(now, [this] { return drawn += 16; });
  }
  /// The node answers its probe.
  void hear(const RosterEntry& entry, RosterTime now) {
    const RosterProbe answer{.answers = true, .nonce = contacts.find(entry)->nonce, .entry = entry};
    (void)contacts.note_answer(answer, now, [this] { return drawn += 16; });
  }
  JoinVerdict judge(RosterTime now, std::size_t most = 8) const {
    return joining.judge(self.name, most, book, contacts, now);
  }

  RosterEntry self = entry_of("me", 1, 5);
  RosterBook book;
  RosterContacts contacts;
  RosterJoining joining{false, 0ms};
  std::uint64_t drawn = 0;
};

}  // namespace

TEST_CASE("roster joining: a node joins alone after a while, or once its book is an answerer's") {
  Newcomer me;
  CHECK(me.judge(RosterJoining::kAloneAfter - 1ms).kind == Join::waits);
  CHECK(me.judge(RosterJoining::kAloneAfter).kind == Join::joins);
  me.joining.note_answer(false);
  CHECK(me.judge(1ms).kind == Join::waits);
  me.joining.note_answer(true);
  CHECK(me.judge(1ms).kind == Join::joins);
}

TEST_CASE("roster joining: a node that awaits its seeds asks from when it has them") {
  Newcomer me;
  me.joining = RosterJoining(true, 0ms);
  CHECK(me.judge(60s).kind == Join::waits);
  me.joining.note_seeds(60s);
  CHECK(me.judge(60s).kind == Join::waits);
  CHECK(me.judge(60s + RosterJoining::kAloneAfter).kind == Join::joins);
}

TEST_CASE("roster joining: a process of the name is replaced where it does not answer") {
  const RosterEntry before = entry_of("me", 7);
  Newcomer me;
  me.learn(before);
  me.joining.note_answer(true);
  me.ask(0ms);
  CHECK(me.judge(1ms).kind == Join::waits);
  const JoinVerdict late = me.judge(RosterJoining::kAloneAfter);
  CHECK(late.kind == Join::joins);
  CHECK(late.replaced == std::vector<Incarnation>{7});
  me.hear(before, 1ms);
  CHECK(me.judge(2ms).kind == Join::duplicate);
}

TEST_CASE("roster joining: a run is full of those that answer, and those that may are awaited") {
  const RosterEntry other = entry_of("other", 7);
  Newcomer me;
  me.learn(other);
  me.joining.note_answer(true);
  me.ask(0ms);
  CHECK(me.judge(1ms, 1).kind == Join::waits);
  CHECK(me.judge(1ms, 2).kind == Join::joins);
  CHECK(me.judge(RosterJoining::kAnswersWithin, 1).kind == Join::joins);  // it is dead
  me.hear(other, 1ms);
  CHECK(me.judge(2ms, 1).kind == Join::full);
}

TEST_CASE("roster joining: of two processes of a name the younger one yields") {
  const RosterEntry older = entry_of("me", 7, 4);
  Newcomer me;
  CHECK(judge_namesakes(me.self, me.book, me.contacts).kind == Namesakes::displaced);
  me.learn(me.self);
  CHECK(judge_namesakes(me.self, me.book, me.contacts).kind == Namesakes::nothing);
  me.learn(older);
  me.ask(0ms);
  CHECK(judge_namesakes(me.self, me.book, me.contacts).kind == Namesakes::nothing);
  me.hear(older, 1ms);
  CHECK(judge_namesakes(me.self, me.book, me.contacts).kind == Namesakes::yields);
}

TEST_CASE("roster joining: a process that is no more is named as replaced") {
  Newcomer me;
  me.learn(me.self);
  me.learn(entry_of("me", 7, 6));
  me.ask(0ms);
  me.ask(RosterContacts::kSuspectAfter);
  const NamesakeVerdict verdict = judge_namesakes(me.self, me.book, me.contacts);
  CHECK(verdict.kind == Namesakes::outlived);
  CHECK(verdict.replaces == std::vector<Incarnation>{7});
}

}  // namespace sotto::test::roster_joining_test
