// What a site does with the parcels that come with push-sum: how much of each counts, and how far
// it may pull.
//
// All parcels of a peer that one round takes in count as one: what it sends more often than it is
// given would raise the mass of all others without end. A parcel with more mass than one may hold
// is that of no honest site. It counts as if its sender had given back what this site gave it in
// the round, to the bit where their masses agree, as those of a barred peer do: nothing is won by
// minting, and a compressed parcel given away for a whole model would leave noise. Nothing of an
// earlier round comes back: it is an old model. A last parcel counts besides, once for each process
// of its sender.
//
// Parcels whose mass does not count (Credit::pull) are taken in with it, and it is taken away when
// the round ends, which leaves the model: what any number of them make of it is a mean of models.
//
// A building block of PushSumMixing, not for users. One thread at a time.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/compress/compressor.h>
#include <sotto/sites/core/mass_rule.h>
#include <sotto/sites/core/mixing/mixing.h>
#include <sotto/sites/core/mixing/push_sum_model.h>
#include <sotto/sites/core/mixing/push_sum_share.h>
#include <sotto/sites/core/places.h>
#include <sotto/sites/core/pull_bound.h>

namespace sotto::sites {

/// The most mass that a parcel may have, but a last one, under the rule and η: a site that shares
/// mass 1 with nobody else.
double most_in_parcel(const MassRule& rule, float stepsize);

class PushSumTaking {
 public:
  /// Model, bound and compressor outlive the object; `stepsize` is η.
  PushSumTaking(PushSumModel& model, PullBound& bound, const Compressor& compressor,
                const MassRule& rule, float stepsize);

  /// As Mixing::rearrange.
  void rearrange(std::span<const std::size_t> from) { follow_list(taken_, from); }
  /// As Mixing::forget.
  void forget(std::size_t peer) { taken_[peer] = {}; }
  /// As Mixing::comes_back.
  void comes_back(std::size_t peer) { taken_[peer].left = false; }

  /// Notes the parcel that was made in this round, its mass, and the peers that it went to; no
  /// peers: none was made.
  void note_given(Payload parcel, double mass, std::span<const Addressee> to);
  /// As Mixing::take_in.
  Result<TakenIn> take_in(std::size_t peer, std::span<const std::byte> payload,
                          const ParcelWeight& weight);
  /// Ends the round in which parcels of a peer count as one. Returns the mass of those that moved
  /// the model and do not count, which is in the model's until it is taken away.
  double end_round();

 private:
  /// What was taken in of one peer.
  struct Taken {
    double mass = 0;     ///< mass with which its parcels counted in this round
    bool given = false;  ///< it was given the parcel of this round
    bool left = false;   ///< the last parcel of its process came
  };
  /// A parcel of a peer.
  struct Share {
    ShareHeader header;
    float whole = 1;  ///< factor of its values
    std::span<const std::byte> encoding;
    bool floats = false;  ///< the encoding is floats as they are
    double counts = 0;    ///< mass with which it counts
  };
  /// How far a parcel pulls.
  struct Pull {
    double distance = 0;
    double length = 0;  ///< length of z
    double part = 1;    ///< part of it that counts
    bool read = false;  ///< the model's values() are those of the parcel
    Influence influence = {};
  };
  struct HowFar {
    double distance = 0;
    double length = 0;
  };

  /// The most mass that such a parcel may hold.
  double most_of(const ShareHeader& header) const;
  /// Whether a parcel says that it has more mass than one may hold, rounding aside.
  bool mints(const ShareHeader& header) const;
  Share share_in(std::size_t peer, std::span<const std::byte> payload, bool own_model) const;
  /// The mass with which a parcel counts.
  double counts_of(const Taken& taken, const ShareHeader& header, bool own_model) const;
  /// How far the parcel pulls; the model's values() ← its values, where Pull::read says so.
  Result<Pull> judge(const Share& share, const ParcelWeight& weight);
  /// p ← p + what this site gave in the round, as much of it as `counts` is of its mass.
  Status put_back(double counts);
  /// p ← p + the parcel's share of values, its mass and its pull cut to what counts.
  Status apply(const Share& share, const Pull& pull);
  /// The model's values() ← whole × what the parcel holds.
  Status read_values(const Share& share);
  /// How far the parcel's model, values() / mass, is from z.
  double distance_of(double mass) const;
  /// How far a model of these floats, times `factor`, is from z, and how long z is. The first is
  /// not finite where a float is not.
  HowFar how_far(std::span<const std::byte> floats, double factor) const;

  PushSumModel& model_;
  PullBound& bound_;
  const Compressor& compressor_;
  bool exact_;                   // parcels have the floats of x as they are
  double most_;                  // most mass that a parcel may hold
  double most_last_;             // … that is its sender's last one
  double least_;                 // mass of which an honest site's lightest parcel has its part
  Payload gave_;                 // the parcel that was made in this round
  double gave_mass_ = 0;         // mass of that parcel; 0: none was made
  double massless_ = 0;          // mass of parcels in this round that count without it
  std::vector<Taken> taken_;     // by peer
  std::size_t noted_ = kNobody;  // whose pull of this round the bound has noted last
};

}  // namespace sotto::sites
