// What a neighbour's parcels did to a site's model in one round, and how they count.
//
// Building blocks of Site, not for users. Plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace sotto::sites {

/// One neighbour's influence on the model when the round was collected.
struct Influence {
  double moved = 0;  ///< distance by which it moved the model
  /// Length of its longest pull before it was cut; none: there was none, or it is not known.
  std::optional<double> distance{};
  std::uint64_t cut = 0;      ///< pulls that were cut to the bound
  bool absurd = false;        ///< one pull was longer than any honest site's (PullVerdict::absurd)
  double excess = 0;          ///< mass of its parcels beyond what a parcel may hold
  std::uint64_t parcels = 0;  ///< push-sum: parcels taken in
  /// Push-sum: the mass of the lightest of them, as a part of the least mass that a site holds,
  /// less what η holds back; none: none was taken in.
  std::optional<double> lightest{};
  /// Adds what another parcel of the neighbour did.
  void add(const Influence& more) {
    moved += more.moved;
    distance = std::max(distance, more.distance);  // none is less than any
    excess += more.excess;
    parcels += more.parcels;
    if (more.lightest) {
      lightest = std::min(lightest.value_or(*more.lightest), *more.lightest);
    }
    cut += more.cut;
    absurd = absurd || more.absurd;
  }
};

/// How a neighbour's parcels count.
enum class Credit : std::uint8_t {
  whole,      ///< as they are, within their bounds
  own_model,  ///< as what the neighbour was given in the round: it is barred
  pull,       ///< with no mass: the neighbour gives much more than it takes
  nothing,    ///< with neither model nor mass: the neighbour takes nothing from this site
};

/// How a parcel counts.
struct ParcelWeight {
  Credit credit = Credit::whole;
  /// Push-sum: the part of its pull that counts (freshness.h); gossip has it in MixedPeer.
  double part = 1;
};

}  // namespace sotto::sites
