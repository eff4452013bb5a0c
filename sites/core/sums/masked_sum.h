// The sum that a receiver makes of masked parcels (secure_sum.h): of which sites, what came of
// them, and what is still owed so that the masks can be taken off.
//
// A building block of SecureSum, not for users. Plain state, without clocks or files. One thread at
// a time. Memory: a word an element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sites/core/message.h>
#include <sotto/sites/core/sums/secret_shares.h>
#include <sotto/sites/core/sums/sum_client.h>
#include <sotto/sites/core/sums/sum_group.h>

namespace sotto::sites {

/// The result of a round's sum.
enum class SumOutcome : std::uint8_t {
  none,        ///< no sum was asked for: too few parcels came
  summed,      ///< the mean is known
  unanswered,  ///< masks or shares are missing
  unequal,     ///< it does not add up: masks do not cancel, or a share is wrong
};

/// The places of the peers whose parcels of a round can be summed, in the order of their ids: those
/// that list the sites that this one does, and agree with each other on the tags of their masks.
std::vector<std::size_t> choose_summed(const SumGroup& group, const SumClient::Headers& headers);

class MaskedSum {
 public:
  /// The sum of these peers' parcels of a round, which came with `headers`, of `words` words each.
  /// `missing` are the ids of all other peers, ascending. The group outlives the object.
  MaskedSum(const SumGroup& group, Round round, std::vector<std::size_t> members,
            std::vector<std::uint64_t> missing, const SumClient::Headers& headers,
            std::size_t words);

  /// The sites in the sum, by their places.
  const std::vector<std::size_t>& members() const { return members_; }
  /// As SecureSum::add.
  void add(std::size_t from, std::span<const std::byte> payload);
  /// As SecureSum::take.
  void take(std::size_t from, const Masks& answer);
  /// As SecureSum::owed.
  std::vector<std::size_t> owed() const;
  /// Takes the masks off: the mean of these sites' models and the own one, whose part of the sum is
  /// `own`, into `mean`, if the outcome is `summed`. The sum is of no more use.
  SumOutcome finish(std::span<const std::uint32_t> own, std::span<float> mean);

 private:
  /// A site in the sum.
  struct Summed {
    Bytes32 commitment{};
    std::vector<std::uint64_t> masked_with;    ///< missing sites with which it has a mask
    bool added = false;                        ///< its words are in the sum
    bool silent = false;                       ///< it has nothing to tell
    std::map<std::uint64_t, Secret32> seeds;   ///< seeds of masks with missing sites, as it told
    std::map<std::size_t, Secret32> shares{};  ///< shares of its own mask, by holder

    /// A mask with a missing site has not been told.
    bool lacks_seed() const;
  };

  /// Too few shares of a site's own mask have been told.
  bool lacks_shares(const Summed& one) const { return one.shares.size() < group_.threshold(); }
  /// The own mask of a site of which enough shares were told; none: they do not fit its commitment.
  std::optional<Secret32> own_mask_of(const Summed& one);

  const SumGroup& group_;
  Round round_;
  std::vector<std::size_t> members_;
  std::vector<std::uint64_t> missing_;
  std::map<std::size_t, Summed> summed_;  // by place
  std::vector<std::uint32_t> words_;
  std::optional<std::size_t> wrong_;  // a holder whose share of another's mask was wrong
};

}  // namespace sotto::sites
