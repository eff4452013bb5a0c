// What a site can do with mass that moves among sites: what only push-sum has (push_sum_mixing.h).
//
// A building block of Site, not for users. One thread at a time.
#pragma once

#include <cstddef>
#include <span>

#include <sotto/base/status.h>
#include <sotto/sites/core/parcel_stream.h>

namespace sotto::sites {

/// Mass that a site made and took away, so that its own comes back to 1.
struct MassBalance {
  double raised = 0;
  double lowered = 0;
};

/// All that a site has to give away when it leaves.
struct LastParcel {
  Payload payload = {};
  double mass = 0;
};

class MassFlow {
 public:
  /// η: to each of k neighbours goes η / (1 + k) of the mass.
  virtual double stepsize() const = 0;
  /// Mass made and taken away by the rule of push-sum, since the state began.
  virtual MassBalance balance() const = 0;
  /// The site leaves: what it holds becomes a parcel, after which it holds nothing, as after
  /// Mixing::give_up.
  virtual LastParcel hand_over() = 0;
  /// Takes back what hand_over gave away, in place of begin, where the receiver has begun anew: it
  /// may have passed some of it on before that. Requires the payload that hand_over made. A fault:
  /// its numbers are not finite, or give no model that is.
  virtual Status take_back(std::span<const std::byte> payload) = 0;
  /// Another process of a peer goes on with its streams.
  virtual void comes_back(std::size_t peer) = 0;

 protected:
  ~MassFlow() = default;
};

}  // namespace sotto::sites
