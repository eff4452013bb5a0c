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
// whatever G is. With a pull of a = min(1, F / G) of its length, 2 a w v is left; F = 4 in gossip.
//
// Push-sum: a late parcel weighs more than one in G pulls, since the mass that its sender is given
// meanwhile comes back with it. In a model of seven sites that list each other and move at an even
// speed, two of which make a round in G = 3, 5, 10 and 20 of the others', these keep 0.60, 0.53,
// 0.47 and 0.44 of their speed where all pulls are whole, 0.60, 0.59, 0.75 and 0.90 with F = 4, and
// 0.71, 0.79, 0.91 and 1.01 with F = 2, which is taken. Mass counts whole: the pull alone is
// damped, so that the sum of all models is no more what it was. F = 1 would damp a parcel that is
// late by a round on its way.
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
  static constexpr Round kOldest = 64;  ///< G from which a pull is damped no more

  /// When a parcel was taken in: the round of this site, and the neighbour's as the parcel has it.
  struct Rounds {
    Round own = 0;
    Round theirs = 0;
  };

  /// The part of its pull that a parcel makes which is taken in at `now`; the first one's is whole,
  /// and up to G = `fresh`, F, all are.
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
