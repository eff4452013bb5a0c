// Tells users, when Adam's variance is frozen, which parameters had no gradient until then: for
// example rows of an embedding not seen yet, layers unfrozen late, and pixels that are blank in the
// first rounds. Their gradients are not compressed at first (late_elements.h).
//
// Allocates only in `take`. One thread at a time.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/exchange.h>
#include <sotto/base/parameter_layout.h>

namespace sotto {

/// One line that says how many zeros a frozen variance has, and in which tensors most; none where
/// it has no zeros. `freeze_step` is the number of rounds before the freeze. `layout` describes
/// `variance`.
std::optional<std::string> describe_zero_variance(const ParameterLayout& layout,
                                                  std::span<const float> variance,
                                                  Round freeze_step);

/// Tells a node's driver once, as Algorithm::take_warnings wants it. It is no part of the saved
/// state: a resumed run tells again.
class FreezeNotice {
 public:
  /// Requires that `variance` is frozen. Empty from the second call on.
  std::vector<std::string> take(const ParameterLayout& layout, std::span<const float> variance,
                                Round freeze_step);

 private:
  bool taken_ = false;
};

}  // namespace sotto
