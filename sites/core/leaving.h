// How a site leaves for good: what it holds goes to one heir.
//
// A building block of Site, not for users. One thread at a time.
#pragma once

#include <cstddef>

#include <sotto/base/status.h>
#include <sotto/sites/core/bequest.h>
#include <sotto/sites/core/mixing/mass_flow.h>
#include <sotto/sites/core/neighbours.h>
#include <sotto/sites/core/outbox.h>
#include <sotto/sites/core/site_self.h>

namespace sotto::sites {

class Leaving {
 public:
  /// All outlive the object; `mass` is null where no mass moves. A peer gets at most `window`
  /// parcels at a time.
  Leaving(SiteSelf& self, Neighbours& peers, Outbox& outbox, MassFlow* mass, std::size_t window)
      : self_(self), peers_(peers), outbox_(outbox), mass_(mass), window_(window) {}

  /// What was given, and whether it came.
  const Bequest& bequest() const { return bequest_; }
  /// As Site::hand_over.
  bool hand_over();
  /// A peer has begun anew, and nothing that it was sent is there any more. If it is the heir and
  /// has not confirmed the gift, the site takes that back, and goes on.
  Status begins_anew(const Neighbour& peer);
  /// As Bequest::retire.
  void retire(const Neighbour& gone) { bequest_.retire(gone); }

 private:
  SiteSelf& self_;
  Neighbours& peers_;
  Outbox& outbox_;
  MassFlow* mass_;
  std::size_t window_;
  Bequest bequest_;
};

}  // namespace sotto::sites
