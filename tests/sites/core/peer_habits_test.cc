// What a neighbour does from round to round: how long a newcomer may be silent.
#include <sotto/sites/core/peer_habits.h>

#include <doctest/doctest.h>

namespace sotto::test::peer_habits_test {

using sites::kLongWhile;
using sites::kNewcomerRounds;
using sites::PeerHabit;
using sites::PeerHabits;

namespace {

/// A round of a peer that was sent a model, says nothing, and takes nothing.
void silent_round(PeerHabits& habits, bool joining, double part = 1.0 / kNewcomerRounds) {
  habits.note_offer(true, joining);
  habits.note_arrivals({.heard = true, .joining = joining, .newcomer_part = part});
}

void rounds_with_parcels(PeerHabits& habits, Round count) {
  for (Round round = 0; round < count; ++round) {
    habits.note_offer(false, false);
    habits.note_arrivals({.any = true, .heard = true});
    habits.note_receipt();
  }
}

}  // namespace

TEST_CASE("a newcomer may be silent for its time, and is named a while after that") {
  PeerHabits habits;
  for (Round round = 0; round + 1 < kNewcomerRounds; ++round) {
    silent_round(habits, true);
    CHECK(habits.comes_to_model(true));
  }
  CHECK(habits.habit() == PeerHabit::none);
  for (Round round = 0; round <= kLongWhile; ++round) {
    silent_round(habits, true);
  }
  CHECK(!habits.comes_to_model(true));
  CHECK(habits.habit() == PeerHabit::confirms_nothing);
}

TEST_CASE("a newcomer's time is the model's, where rounds have a time") {
  PeerHabits habits;
  for (int round = 0; round < 9; ++round) {
    silent_round(habits, true, 0.1);
  }
  CHECK(habits.comes_to_model(true));
  silent_round(habits, true, 0.1);
  silent_round(habits, true, 0.1);
  CHECK(!habits.comes_to_model(true));
}

TEST_CASE("only rounds with parcels give a newcomer its time back") {
  PeerHabits habits;
  for (Round round = 0; round < kNewcomerRounds; ++round) {
    silent_round(habits, true);
    habits.note_meeting();
    habits.note_receipt();
  }
  CHECK(!habits.comes_to_model(true));
  rounds_with_parcels(habits, kLongWhile / 2);
  CHECK(habits.comes_to_model(true));
  for (Round round = 0; round <= kNewcomerRounds / 2; ++round) {
    silent_round(habits, true);
  }
  CHECK(!habits.comes_to_model(true));
  rounds_with_parcels(habits, kLongWhile);
  for (Round round = 0; round + 1 < kNewcomerRounds; ++round) {
    silent_round(habits, true);
  }
  CHECK(habits.comes_to_model(true));
}

TEST_CASE("one that sends nothing by right has its time back for receipts") {
  PeerHabits habits;
  for (int start = 0; start < 50; ++start) {  // an observer without a state, started again
    for (Round round = 0; round < kNewcomerRounds / 4; ++round) {
      habits.note_offer(true, true);
      habits.note_arrivals({.heard = false, .joining = true});
    }
    CHECK(habits.comes_to_model(true));
    for (Round round = 0; round < kLongWhile; ++round) {
      habits.note_receipt();
      habits.note_offer(false, false);
      habits.note_arrivals({.heard = false});
    }
  }
  habits.note_offer(true, true);
  habits.note_arrivals({.heard = false, .joining = true, .newcomer_part = 30});  // a long sleep
  for (Round round = 0; round < kLongWhile; ++round) {
    habits.note_receipt();
    habits.note_arrivals({.heard = false});
  }
  CHECK(habits.comes_to_model(true));
}

TEST_CASE("a peer that meets the site in each round uses up its time, too") {
  // It is joining when parcels are made, and no more when they are taken in.
  PeerHabits habits;
  for (Round round = 0; round < kNewcomerRounds + kLongWhile; ++round) {
    habits.note_offer(true, true);
    habits.note_arrivals({.heard = true, .joining = false});
  }
  CHECK(habits.habit() == PeerHabit::confirms_nothing);
}

}  // namespace sotto::test::peer_habits_test
