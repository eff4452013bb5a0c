// What a site notes of its neighbours from round to round, where no single message breaks a rule:
// whose parcels moved the model, who is late or silent, who takes more than it gives, and whom to
// blame where a model has to be put back.
//
// The notes of one neighbour are beside it (neighbour.h); here is what is compared among them.
//
// A building block of Site, not for users. One thread at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sites/core/mixing/mixing.h>
#include <sotto/sites/core/neighbours.h>
#include <sotto/sites/core/pace.h>
#include <sotto/sites/core/patience_account.h>
#include <sotto/sites/core/site_state.h>

namespace sotto::sites {

/// A site whose round ends.
struct RoundEnd {
  Round offered = 0;
  /// Push-sum: ω, and the least mass that a site holds; none: the site has no mass that counts.
  std::optional<double> mass = {};
  double least_mass = 0;
  double share = 1;  ///< η: a site of degree k gives η / (1 + k) of its mass to each neighbour
};

/// A round whose parcels are about to be taken in.
struct IntakeRound {
  RoundTime time = {};
  bool all_send = true;      ///< the exchange keeps no neighbour from sending
  double newcomer_part = 0;  ///< PeerHabits::Arrivals::newcomer_part
};

class Conduct {
 public:
  /// A round's parcels are about to be taken in.
  void begin_intake(Neighbours& peers, const Pace& pace, const IntakeRound& round);
  /// The round's parcels were taken in, and mixed with these peers.
  void end_intake(Neighbours& peers, std::span<const MixedPeer> mixed, const RoundEnd& round);

  /// A neighbour's model was taken over, `moved` away from the site's own.
  void took_over(Neighbour& giver, double moved);
  /// Whether something was taken in that can be put back.
  bool influenced() const { return influenced_; }
  /// The peers whose parcels entered the model in the last collect, the farthest first.
  static std::vector<Suspect> influences(const Neighbours& peers);
  /// The model was put back in this round: blames those that moved it, as influences() gives them,
  /// if they moved it farther than a site's `longest_step` explains. `at_once`: the first step
  /// after them went wrong.
  std::vector<Suspect> put_back(Neighbours& peers, Round round, double longest_step, bool at_once);
  /// The state was given up.
  void give_up() { influenced_ = false; }

  /// Whether the mass has been near its floor for a long while.
  bool drained() const { return low_rounds_ >= kLongWhile; }

 private:
  void note_mass(const RoundEnd& round);
  void note_habits(Neighbours& peers, const RoundEnd& round) const;

  PatienceAccount account_;  ///< patience that all neighbours used up together
  bool influenced_ = false;  ///< something was taken in since put_back, or ever
  Round low_rounds_ = 0;     ///< rounds in a row in which ω was near its floor
  Round high_rounds_ = 0;    ///< … in which it was twice that of a site among its equals
};

}  // namespace sotto::sites
