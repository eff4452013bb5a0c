// How a site leaves for good: what it holds goes to one heir.
//
// A building block of Site, not for users. One thread at a time.
#pragma once

#include <cstddef>
#include <optional>

#include <sotto/base/status.h>
#include <sotto/sites/core/bequest.h>
#include <sotto/sites/core/mixing/mixing.h>
#include <sotto/sites/core/neighbours.h>
#include <sotto/sites/core/site_self.h>

namespace sotto::sites {

class Leaving {
 public:
  /// All outlive the object.
  Leaving(SiteSelf& self, Neighbours& peers, Mixing& mixing)
      : self_(self), peers_(peers), mixing_(mixing) {}

  /// What was given, and whether it came.
  const Bequest& bequest() const { return bequest_; }
  /// As Site::hand_over, but that the parcel, which is the heir's latest, has yet to be sent.
  /// Returns the heir; no value: nothing was handed over.
  std::optional<std::size_t> hand_over();
  /// A peer has begun anew, and nothing that it was sent is there any more. If it is the heir and
  /// has not confirmed the gift, the site takes that back, and goes on. What the heir had passed on
  /// before, less than all of the gift, then counts twice: no protocol can tell that it did, and
  /// never to take back would lose the gift of each heir that dies (docs/sites.md).
  Status begins_anew(Neighbour& peer);
  /// As Bequest::retire.
  void retire(const Neighbour& gone) { bequest_.retire(gone); }

 private:
  SiteSelf& self_;
  Neighbours& peers_;
  Mixing& mixing_;
  Bequest bequest_;
};

}  // namespace sotto::sites
