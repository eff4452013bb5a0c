// Parts of one whole mean that another member holds, as they come. Parts of two means, or of two
// numbers of parts, are never joined. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include <sotto/sites/epochs/epoch_mean.h>
#include <sotto/sites/epochs/epoch_message.h>
#include <sotto/sites/epochs/epoch_node.h>

namespace sotto::sites {

class HeldParts {
 public:
  /// Takes in a part. Once all are there it hands out the mean, with the digest that was said,
  /// which is to be checked; none: some are missing.
  std::optional<WholeMean> add(const PartMessage& part);
  /// The number of parts that are there.
  std::size_t count() const { return parts_.size(); }
  /// Forgets all.
  void clear() { parts_.clear(); }

 private:
  std::map<std::uint16_t, MeanPart> parts_;
  std::uint16_t count_ = 0;  ///< parts of the mean
  EpochDigest digest_{};     ///< its digest, as said with each part
};

}  // namespace sotto::sites
