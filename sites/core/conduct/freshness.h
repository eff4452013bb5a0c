// How much of its pull a neighbour's parcels may make that falls behind this site.
//
// Gossip: a copy pulls once for each parcel, in the round in which that comes. Pulled to in every
// round, a copy that is renewed in each G rounds only would hold this site back by half of what it
// went since then in each of them: with k such sites around one that makes a round in G of theirs,
// all go about (k + 1) / (k + G) of their way.
//
// A neighbour that makes one round while this site makes G sends models that know of the site as it
// was G to 2 G rounds ago: between its parcels it takes in what waited for it, and what it makes of
// that it sends a parcel later. Along the way that all go, by v a round, such a model lies up to
// 2 G v behind, and with the weight w one pull in G rounds takes 2 w v of each round's v back,
// whatever G is. With a pull of a = min(1, kFreshCopy / G) of its length, 2 a w v is left.
//
// Push-sum: a late parcel weighs more than one in G pulls, since the mass that its sender is given
// meanwhile comes back with it. In a model of seven sites that list each other and move at an even
// speed, two of which make a round in G = 3, 5, 10 and 20 of the others', these keep 0.60, 0.53,
// 0.47 and 0.44 of their speed, and with a = 4 / G 0.60, 0.59, 0.75 and 0.90. So a = 1 / G there,
// which keeps 0.88, 0.93, 1.02 and 1.07. Mass counts whole: only the pull is damped.
//
// Rounds are those that the neighbour names in its parcels. One whose parcels are rare since its
// link is slow names later ones, and counts whole: sites with slow links need what they hear. A
// liar that names rounds which it has not made counts whole, too: its model is then like any other
// lie, which a robust rule withstands.
//
// a is at least its value at G = kOldest: two sites that hear each other at bounded distances still
// contract what they differ by.
//
// A building block of Site, not for users. A plain value, of the process alone.
#pragma once

#include <algorithm>
#include <optional>

#include <sotto/base/ids.h>

namespace sotto::sites {

class Freshness {
 public:
  /// G up to which a pull is made whole, to a copy and by a parcel of push-sum.
  static constexpr Round kFreshCopy = 4;
  static constexpr Round kFreshParcel = 1;
  static constexpr Round kOldest = 64;  ///< G from which a pull is damped no more

  /// When a parcel was taken in: the round of this site, and the neighbour's as the parcel has it.
  struct Rounds {
    Round own = 0;
    Round theirs = 0;
  };

  /// The part of its pull that a parcel makes which is taken in at `now`; the first one's is whole,
  /// and up to G = `fresh` all are.
  double part(Rounds now, Round fresh) const {
    if (!last_ || now.own <= last_->own) {
      return 1;
    }
    const Round passed = now.own - last_->own;
    const Round made =
        std::clamp<Round>(now.theirs - std::min(last_->theirs, now.theirs), 1, passed);
    const double behind = static_cast<double>(passed) / static_cast<double>(made);
    return std::min(1.0, static_cast<double>(fresh) / std::min<double>(behind, kOldest));
  }
  /// A parcel was taken in.
  void note(Rounds now) { last_ = now; }

 private:
  std::optional<Rounds> last_;  ///< rounds of the latest parcel
};

}  // namespace sotto::sites
