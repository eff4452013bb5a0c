// What a neighbour does from round to round over all its meetings and incarnations, so that it
// cannot begin anew: nothing of it breaks a rule, and what lasts is a habit (PeerHabit).
//
// A building block of Site, not for users. A plain value, of the process alone.
#pragma once

#include <algorithm>
#include <utility>

#include <sotto/base/ids.h>
#include <sotto/sites/core/conduct/far_pulls.h>
#include <sotto/sites/core/site_state.h>

namespace sotto::sites {

/// Rounds after which what a peer does is a habit.
inline constexpr Round kLongWhile = 64;
/// Rounds for which a peer that was sent a model may be silent, where rounds have no time.
inline constexpr Round kNewcomerRounds = 16 * kLongWhile;

class PeerHabits {
 public:
  /// Parcels are made. `full`: the peer's window has no room for one; `joining` as in Arrivals.
  void note_offer(bool full, bool joining) {
    full_ = full;
    joining_ = joining;
  }
  /// A parcel of this mass was made for it.
  void note_given(double mass) {
    given_ = true;
    drawn_ += mass;
  }
  /// A parcel of its was taken in with this mass, or one for it was written off.
  void note_returned(double mass) { drawn_ -= mass; }
  /// A receipt came that confirms more than the one before.
  void note_receipt() {
    full_rounds_ = 0;
    confirmed_ = true;
  }
  /// The two meet.
  void note_meeting() { silent_rounds_ = 0; }

  /// What a round brought of it, before that is taken in.
  struct Arrivals {
    bool any = false;      ///< parcels came
    bool heard = false;    ///< it may send, and says that it does
    bool joining = false;  ///< it has got this site's model, and has not begun yet
    bool may_send = true;  ///< the exchange does not keep it from sending
    /// Part of the time that a newcomer has, which the round has taken.
    double newcomer_part = 1.0 / kNewcomerRounds;
  };
  /// A round's parcels are about to be taken in.
  void note_arrivals(const Arrivals& round) {
    const bool joining = std::exchange(joining_, false) || round.joining;
    // One that sends nothing here by right shows by its receipts that it takes part.
    const bool takes_part = std::exchange(confirmed_, false) && !round.heard;
    newcomer_ = round.any || takes_part
                    ? std::max(0.0, newcomer_ - 1.0 / kLongWhile)
                    : std::min(1.0, newcomer_ + (joining ? round.newcomer_part : 0));
    const bool excused = comes_to_model(joining);
    full_rounds_ += std::exchange(full_, false) && !excused ? 1U : 0U;
    const bool silent = round.heard && !round.any && !excused;
    silent_rounds_ = silent ? silent_rounds_ + 1 : 0;
    mute_rounds_ = round.any ? 0U : mute_rounds_ + (silent && round.may_send ? 1U : 0U);
  }
  /// The pull of the round's parcels, and whether it was cut.
  void note_pull(double distance, bool cut) { far_pulls_.note(distance, cut); }
  /// Parcels were taken in, of which one had more mass than it may.
  void note_parcels(bool too_heavy) {
    heavy_ = too_heavy ? std::min(heavy_ + kHeavyRound, kMostHeavy)
                       : heavy_ - std::min<Round>(heavy_, 1);
  }
  /// The round is over, in which it gave so many parcels with the mass of an honest site's, or one
  /// with less (`thin`).
  void end_round(Round honest, bool thin) {
    constexpr double kForgets = 1.0 / 1024;
    constexpr Round kMostLean = 4 * kLongWhile;
    drawn_ -= kForgets * drawn_;
    const bool was_given = std::exchange(given_, false);
    lean_ = std::min(lean_ + (thin ? kHeavyRound : 0) + (was_given ? 1 : 0), kMostLean);
    lean_ -= std::min(lean_, 2 * honest);
  }
  /// What a comparison with the others has shown, in this round.
  struct Compared {
    bool takes = false;
    bool gives = false;  ///< much more mass than it takes, and this site has too much
    bool far_ahead = false;
  };
  /// Takes the outcome of the round's comparison.
  void set(const Compared& compared) { compared_ = compared; }

  /// Whether it has got this site's model and has yet to begin: it waits for a second one, and
  /// sends nothing. For a newcomer's time at most, as a liar may say so; only rounds with parcels
  /// of it, or with receipts of one that sends nothing here, give that time back.
  bool comes_to_model(bool joining) const { return joining && newcomer_ < 1; }
  /// Whether it confirms nothing.
  bool confirms_nothing() const { return full_rounds_ >= kLongWhile; }
  /// Whether it has claimed more mass than a site may for a long while.
  bool mints_for_long() const { return heavy_ >= kMostHeavy; }
  /// Whether it takes, and gives less than any honest site does: for long, or in parcels that no
  /// honest site makes.
  bool gives_too_little() const { return lean_ >= kLongWhile; }
  /// Whether it gives much more mass than it takes, to a site that would give it as much.
  bool gives_much() const { return compared_.gives; }
  /// Latest rounds in a row in which it was heard, and sent no parcel.
  Round silent_rounds() const { return silent_rounds_; }
  /// Mass that it was given less mass that it gave; what was long ago counts less and less.
  double drawn() const { return drawn_; }
  /// The habit that no rule forbids, if any, of a peer that is up.
  PeerHabit habit() const {
    constexpr Round kMints = 3 * kHeavyRound;  // no honest site makes one such parcel
    return confirms_nothing()           ? PeerHabit::confirms_nothing
           : compared_.takes            ? PeerHabit::takes
           : heavy_ >= kMints           ? PeerHabit::mints
           : mute_rounds_ >= kLongWhile ? PeerHabit::sends_nothing
           : compared_.far_ahead        ? PeerHabit::far_ahead
           : compared_.gives            ? PeerHabit::gives
           : far_pulls_.stays()         ? PeerHabit::stays_far
                                        : PeerHabit::none;
  }

 private:
  static constexpr Round kHeavyRound = 8;
  static constexpr Round kMostHeavy = kHeavyRound * kLongWhile;

  Round silent_rounds_ = 0;
  Round full_rounds_ = 0;   ///< rounds in which its window had no room, since its latest receipt
  Round mute_rounds_ = 0;   ///< rounds since its latest parcel in which it was heard and sent none
  double newcomer_ = 0;     ///< part of a newcomer's time that it has used up
  bool confirmed_ = false;  ///< a receipt came since the latest intake
  bool full_ = false;       ///< as note_offer said of the round
  bool joining_ = false;    ///< as note_offer said of the round
  /// Eight for each round in which its parcels had more mass than they may, less one for others.
  Round heavy_ = 0;
  /// Eight for each round in which it gave a parcel with less mass than an honest site's, one for
  /// each parcel that it was given, less two for each honest one that it gave.
  Round lean_ = 0;
  double drawn_ = 0;
  bool given_ = false;  ///< a parcel was made for it in this round
  FarPulls far_pulls_;
  Compared compared_;
};

}  // namespace sotto::sites
