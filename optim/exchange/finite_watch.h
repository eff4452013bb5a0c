// Whether a vector is finite, noted piece by piece as it is made: reading it once more would cost a
// pass over the memory. Pieces may come from several threads.
//
// A building block of the algorithms, not for users. A view, for one pass.
#pragma once

#include <span>
#include <string_view>

#include <sotto/base/shared_flag.h>
#include <sotto/base/status.h>
#include <sotto/optim/local_node.h>

namespace sotto {

class FiniteWatch {
 public:
  /// Watches a vector of `node`, which must outlive the watch.
  explicit FiniteWatch(const LocalNode& node) : node_(node) {}

  /// Whether a piece is finite, as Ops::combine says; from any thread.
  void note(bool finite) {
    if (!finite) {
      seen_.raise();
    }
  }
  /// Calls LocalNode::require_finite for the vector of the noted pieces.
  Status require(std::span<const float> values, std::string_view what) const {
    return seen_.raised() ? node_.require_finite(values, what) : Status();
  }

 private:
  const LocalNode& node_;
  SharedFlag seen_;  ///< raised once a value was not finite
};

}  // namespace sotto
