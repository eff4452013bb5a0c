// Parts of one whole mean that other members hold, as they come. Parts of two senders, of two
// means, or of two numbers of parts are never joined, so that who has sent a wrong one is known.
// One thread at a time. Memory: the encodings of a mean for each sender.
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
  /// Takes in a part from a sender, the first of each place; parts of more than kMostEpochMembers
  /// senders are ignored. Once all of one sender are there it hands out the mean, with the digest
  /// that was said, which is to be checked, and forgets those of that sender; none: some are
  /// missing.
  std::optional<WholeMean> add(const EpochNode& from, const PartMessage& part);
  /// The number of parts that are there, of all senders.
  std::size_t count() const;
  /// Forgets all.
  void clear() { senders_.clear(); }

 private:
  struct Sent {
    std::map<std::uint16_t, MeanPart> parts{};
    std::uint16_t count = 0;  ///< parts of the mean
    EpochDigest digest{};     ///< its digest, as said with each part
  };
  std::map<EpochNode, Sent> senders_;
};

}  // namespace sotto::sites
