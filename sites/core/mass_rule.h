// What push-sum does with mass (docs/sites.md): how it comes back to 1, and what a parcel may
// weigh.
//
// A model z = x / ω does not change when x and ω are multiplied by the same number. So a site sets
// its own mass freely: whatever a neighbour took, kept or made up is mended without knowing which
// one did it. Plain values.
#pragma once

namespace sotto::sites {

/// All of it is part of what sites must agree on, but for an observer's, which holds a mass of 1.
struct MassRule {
  double back = 1.0 / 256;  ///< ε: the part of the way back to 1 that ω goes in a round
  double least = 0.25;      ///< lower bound of ω after a round
  double most = 16;         ///< upper bound of ω after a round
  double parcel = 1;        ///< most mass that a parcel may hold, times η; a last one without η
};

}  // namespace sotto::sites
