// The sites that sum in secret, as one of them knows them: how many of them a sum needs, and the
// secrets that this site shares with each.
//
// A building block of SecureSum, not for users. Plain state, without clocks or files. One thread at
// a time. Secrets are wiped as soon as they are of no more use (Secret32).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/sites/core/sums/pair_masks.h>
#include <sotto/sites/core/sums/secret_shares.h>
#include <sotto/sites/core/sums/secure_sum_rule.h>

namespace sotto::sites {

/// The number of the site of this name, which all sites give it; not 0.
std::uint64_t site_id(std::string_view name);

/// Whether this id is among these, which ascend.
bool contains(std::span<const std::uint64_t> ids, std::uint64_t id);

class SumGroup {
 public:
  /// A peer of the site.
  struct Member {
    std::string name;
    std::uint64_t id = 0;
    /// Secret shared with this site; none: the member's key is not known.
    std::optional<Secret32> shared;
  };

  /// The group of the site `name`, without peers; `secret` is the secret half of its key.
  SumGroup(SecureSumRule rule, std::string_view name, const Bytes32& secret);

  /// The site itself.
  std::uint64_t id() const { return id_; }
  /// The site's peers, in the order of its list.
  std::span<const Member> peers() const { return peers_; }
  /// The place of the peer with this id.
  std::optional<std::size_t> place_of(std::uint64_t id) const;
  /// Ids of the peers, but `receiver`, that are not in `set`, ascending.
  std::vector<std::uint64_t> others_than(std::span<const std::uint64_t> set,
                                         std::uint64_t receiver) const;

  /// n
  std::size_t sites() const { return peers_.size() + 1; }
  /// u: the fewest peers with parcels for a sum.
  std::size_t least_members() const;
  /// t: the fewest shares that give a mask back.
  std::size_t threshold() const { return sites() + rule_.colluders - least_members(); }
  /// The largest value of an element.
  double range() const { return rule_.range; }
  /// Steps of the grid between 0 and 1, so that the sum over all sites fits.
  double scale() const;

  /// As SecureSum::know.
  void know(std::span<const std::string> names);
  /// Replaces the key, of which `secret` is the secret half from now on, and forgets those of
  /// peers.
  void begin_anew(const Bytes32& secret);
  /// As SecureSum::public_key.
  const Bytes32& public_key() const { return keys_->public_key(); }
  /// As SecureSum::take_key.
  bool take_key(std::size_t peer, const Bytes32& key);

 private:
  SecureSumRule rule_;
  std::uint64_t id_;
  std::optional<MaskKeys> keys_;  // of one key after the other
  std::vector<Member> peers_;
};

}  // namespace sotto::sites
