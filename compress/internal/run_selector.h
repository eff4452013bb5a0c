// The largest magnitudes of one run after another, each found among the few that lie above a bound
// which follows the runs before: no search goes over the whole vector, nor twice over a run that is
// much as the last. The choice does not depend on the bound.
//
// Views the operations. One thread at a time. Allocates when a run first needs more room than all
// before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sotto/kernels/ops.h>

namespace sotto::internal {

class RunSelector {
 public:
  explicit RunSelector(const Ops& ops) : ops_(ops) {}

  /// Sets `indices`, ascending, and `values`, equally long, to those of x that are largest in
  /// magnitude, ties to the lowest index. An index counts from `first` at x's first element.
  /// Requires finite x, no shorter than the lists.
  void select(std::span<const float> x, std::size_t first, std::span<std::uint32_t> indices,
              std::span<float> values);

  /// The bits of |x| below which elements are not looked at in the next run, unless too few are
  /// above; 0: there is no bound yet.
  std::uint32_t bound() const { return bound_; }

 private:
  /// Sets the bound of the next run, after one with this threshold and with `found` elements above
  /// its bound, all of which were looked at where that was `enough`.
  void learn(std::span<const float> x, std::size_t k, std::uint32_t threshold, std::size_t found,
             bool enough);

  const Ops& ops_;
  std::vector<std::uint32_t> indices_;  ///< indices of elements above the bound
  std::vector<float> values_;
  std::int64_t threshold_ = 0;  ///< threshold of the runs before, smoothed; 0: none
  std::int64_t distance_ = 0;   ///< distance of the bound below the threshold
  std::uint32_t bound_ = 0;     ///< 0: none
};

}  // namespace sotto::internal
