// All that a site held, as one parcel, once the site has left for good and given it to one heir.
//
// A building block of Site, not for users. A plain value.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include <sotto/sites/core/message.h>
#include <sotto/sites/core/neighbour.h>

namespace sotto::sites {

/// The peer that a site gives all to as it leaves in `round`: the first by name among those that
/// are up, stay, take part, count here and have room for a parcel in their `window`. Those that
/// began anew with a gift come last, the oftener the later: what such a peer had passed on counts
/// twice, and with any other that is up it cannot do so again. No value: there is none.
std::optional<std::size_t> choose_heir(std::span<const Neighbour> peers, Round round,
                                       std::size_t window);

class Bequest {
 public:
  /// Whether all was given, and not taken back.
  bool given() const { return !heir_.empty(); }
  /// The name of the peer that was given all; empty: none was.
  const std::string& heir() const { return heir_; }
  /// Notes that parcel number `parcel` to this peer has all that the site held.
  void give(const std::string& heir, Sequence parcel);
  /// Forgets the gift: nobody has the parcel.
  void take_back();
  /// The gift, while this peer has it and has not confirmed it; null: there is none.
  const OutStream::Item* held_by(const Neighbour& peer) const;
  /// Notes that this peer leaves the list. If it is the heir and has not confirmed the gift, the
  /// gift is lost.
  void retire(const Neighbour& gone);
  /// The mass of the gift, while the heir has not confirmed it; 0 afterwards.
  double undelivered(std::span<const Neighbour> peers) const;
  /// Whether all parcels to the peers that are up and stay have their receipts, and so has the
  /// gift. Never again where the heir left the list before its receipt.
  bool delivered(std::span<const Neighbour> peers) const;

 private:
  std::string heir_;
  Sequence parcel_ = 0;
  double lost_ = 0;  // mass of the gift whose heir left the list before its receipt
};

}  // namespace sotto::sites
