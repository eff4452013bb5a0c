// The mean by which sites mix models that stay hidden: what only secure_mean has
// (secure_mixing.h).
//
// A building block of Site, not for users. One thread at a time.
#pragma once

#include <span>

#include <sotto/sites/core/site_state.h>

namespace sotto::sites {

class SecureSum;

class HiddenMean {
 public:
  /// The sums by which parcels are taken in.
  virtual SecureSum& sum() = 0;
  /// The outcomes of the sums.
  virtual SumCounts counts() const = 0;
  /// The model that a site without one is given, in place of this site's.
  virtual std::span<const float> model_for_newcomers() const = 0;

 protected:
  ~HiddenMean() = default;
};

}  // namespace sotto::sites
