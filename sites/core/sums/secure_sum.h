// The sum of what the neighbours of a site send, without any one of them being shown: masked
// parcels, after Bonawitz et al., Practical secure aggregation for privacy-preserving machine
// learning (CCS 2017), among sites that all trust each other.
//
// Rule, for each receiver i and round R on its own, with x a model on a grid of integers modulo
// 2³², m_jk the mask that only j and k know (pair_masks.h), b_j a mask that only j knows:
//   client j     y_j = x_j + b_j + Σ_{k > j} m_jk − Σ_{k < j} m_jk, over all others than i; and to
//                each site a share of the b_j that is meant for each other one (secret_shares.h)
//   receiver i   names those whose parcels came, the set U, to all in U
//   client k     tells i its shares of b_j for j ∈ U, and m_jk for the others, which are missing
//   receiver i   Σ_{j ∈ U} x_j = Σ y_j − Σ b_j − the masks with those that are missing
// For each other site a client tells either a share of b_j or the mask with it, never both: it
// answers when its own choice of missing sites is made, and to those alone that made the same. U
// has u sites or more, and t shares are needed, of n sites:
//   u = max(c + 2, ⌈(n + c + 1) / 2⌉),  t = n + c − u
// Then the receiver and c colluding clients learn the sum over the others in U, which are two or
// more, and no more than that, even if the receiver tells each client another choice. For to see
// x_v it needs v's masks with all other honest clients, and b_v. A client w that is in v's choice
// must tell the mask with v, so v is missing in the choice of w, and w tells no share of b_v. Those
// that are not in it are n − 1 − u at most, and with c colluders that is less than t.
//
// A site that is missing before it sent its parcel costs nothing, while u others are there; one
// that answers no more after that is replaced by the shares of others, unless another one was
// missing already. What does not add up, as four words of each parcel show, is not used. A client
// can make any sum useless, and nobody sees which one did. One that says another tag of
// its mask with a site than that site does is left out, and that site with it, for as long as it
// says so.
//
// Payload: round u64, number of other members u16; for each its id u64, the tag of the pair u64 (0:
// no mask) and a share of 32 bytes; a commitment of 32 bytes to b_j; d + 4 words.
//
// A building block of Site, not for users. Plain state, without clocks or files. One
// thread at a time. Memory: two words an element, and one more for each parcel in work. Secrets,
// and what is derived of them or told of others' masks, are wiped as soon as they are of no more
// use (Secret32); the bytes of messages are not.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/sites/core/message.h>
#include <sotto/sites/core/parcel_stream.h>
#include <sotto/sites/core/sums/pair_masks.h>
#include <sotto/sites/core/sums/secret_shares.h>
#include <sotto/sites/core/sums/secure_sum_rule.h>

namespace sotto::sites {

/// The number of the site of this name, which all sites give it; not 0.
std::uint64_t site_id(std::string_view name);

/// The result of a round's sum.
enum class SumOutcome : std::uint8_t {
  none,        ///< no sum was asked for: too few parcels came
  summed,      ///< the mean is known
  unanswered,  ///< masks or shares are missing
  unequal,     ///< it does not add up: masks do not cancel, or a share is wrong
};

class SecureSum {
 public:
  static constexpr std::size_t kMostSites = kMostSummed;

  /// A site `name` with a model of `dimension` elements; its process draws its masks from `secret`.
  SecureSum(SecureSumRule rule, std::string_view name, const Bytes32& secret,
            std::size_t dimension);
  SecureSum(const SecureSum&) = delete;
  SecureSum& operator=(const SecureSum&) = delete;

  /// u: the fewest peers with parcels for a sum.
  std::size_t least_members() const {
    const std::size_t sites = members_.size() + 1;
    return std::max(rule_.colluders + 2, (sites + rule_.colluders + 2) / 2);
  }
  /// The longest payload for this rule.
  std::size_t max_payload() const;
  /// Fault::malformed for what payload_for cannot have made.
  Status check_payload(std::span<const std::byte> payload) const;

  // The sites that take part.

  /// The peers by name, in the order of the list; keys of those that were there stay, rounds under
  /// way are given up.
  void know(std::span<const std::string> names);
  /// The key that peers must be told when they are met.
  const Bytes32& public_key() const { return keys_->public_key(); }
  /// All keys and masks are drawn anew, as rounds may be made again.
  void begin_anew();
  /// The key of a peer's process. False for one that everybody could have made. One that another
  /// site has gives other masks, which its teller does not know.
  bool take_key(std::size_t peer, const Bytes32& key);

  // As a client.

  /// A round begins, with this model; it is later than all before. Rounds before the last few are
  /// forgotten.
  void open(Round round, std::span<const float> model);
  /// The payload for a peer; null while fewer than u − 1 others share masks with this site.
  Payload payload_for(std::size_t receiver) const;
  /// A payload came, which check_payload passed: its shares are kept. Returns answers that are due
  /// to peers that asked before.
  std::vector<std::pair<std::size_t, Masks>> arrived(std::size_t from,
                                                     std::span<const std::byte> payload);
  /// The answer to a peer: none while this site has not closed that round, empty if it must not be
  /// told, or has asked about a round that this process knows nothing of. Fault::unexpected for a
  /// question that no honest site asks.
  Result<std::optional<std::vector<RevealedMask>>> answer(std::size_t receiver,
                                                          const Unmask& question);
  /// The answers that have waited until this round was closed.
  std::vector<std::pair<std::size_t, Masks>> answers_due();

  // As a receiver.

  /// The sites to be summed, from now on fixed: those of which a payload of this round came. None
  /// if they are too few.
  std::optional<Unmask> close();
  /// The payload of one of these; others do not count.
  void add(std::size_t from, std::span<const std::byte> payload);
  /// An answer of a peer.
  void take(std::size_t from, const Masks& answer);
  /// The peers that still owe answers.
  std::vector<std::size_t> owed() const;
  /// The sites in the set, by their places.
  std::vector<std::size_t> members() const;
  /// Ends the round: the mean of this site's model and those of the set, into `mean`, of d
  /// elements, if the outcome is `summed`.
  SumOutcome finish(std::span<float> mean);

  /// Elements of the own model that were beyond the range in the latest round.
  std::size_t clipped() const { return clipped_; }

 private:
  static constexpr std::size_t kSentinels = 4;
  static constexpr std::size_t kMemberBytes = 2 * sizeof(std::uint64_t) + sizeof(Bytes32);
  static constexpr Round kRemembered = 3;

  struct Member {
    std::string name;
    std::uint64_t id = 0;
    /// Secret shared with this site; none: the member's key is not known.
    std::optional<Secret32> shared;
  };

  /// A payload's entry about another member.
  struct Entry {
    std::uint64_t id = 0;
    std::uint64_t tag = 0;
    Secret32 share{};
  };
  struct Header {
    Round round = 0;
    std::vector<Entry> entries;
    Bytes32 commitment{};
  };

  /// A round of this process, as a client and as a holder of shares.
  struct Held {
    bool opened = false;
    /// Secrets of the masks as in the payloads, by member.
    std::vector<std::optional<Secret32>> shared;
    std::map<std::size_t, Header> headers;  ///< headers of payloads, by sender
    bool closed = false;
    /// Ids of the sites that this site chose as missing; only in closed rounds.
    std::vector<std::uint64_t> missing;
    /// Questions that came before the round was closed, by receiver.
    std::map<std::size_t, Unmask> questions;
    std::vector<std::size_t> askers;  ///< receivers that got an answer
  };

  /// The sum that is being made.
  struct Summing {
    std::vector<std::size_t> members;  ///< places of the summed sites, in the order of their ids
    std::vector<std::uint64_t> missing;
    std::vector<std::uint32_t> words;
    std::vector<std::size_t> added;
    /// Shares of each member's mask, by holder.
    std::map<std::size_t, std::map<std::size_t, Secret32>> shares;
    /// Seeds of masks, by member and missing site.
    std::map<std::pair<std::size_t, std::uint64_t>, Secret32> seeds;
    std::vector<std::size_t> silent;   ///< members without anything to tell
    std::optional<std::size_t> wrong;  ///< a holder whose share of another's mask was wrong
  };

  static std::optional<Header> read_header(ByteReader& in);
  /// The place of a peer with this id.
  std::optional<std::size_t> place_of(std::uint64_t id) const;
  /// t: the fewest shares that give a mask back.
  std::size_t threshold() const { return members_.size() + 1 + rule_.colluders - least_members(); }
  /// Steps of the grid between 0 and 1, so that the sum over all sites fits.
  double scale() const;
  /// b of this site for a receiver.
  Secret32 own_mask(Round round, std::uint64_t receiver) const;
  /// The shares of that mask, by the places of their holders.
  std::vector<SecretShare> shares_for(Round round, std::size_t receiver) const;
  /// The share that `from` gave this site of its mask for a receiver.
  const Bytes32* share_of(const Held& held, std::size_t from, std::size_t receiver) const;
  std::vector<std::uint64_t> others_than(std::span<const std::uint64_t> set,
                                         std::uint64_t receiver) const;
  /// The peers among these that agree with each other on the tags of their masks.
  std::vector<std::size_t> consistent(const Held& held, std::vector<std::size_t> places) const;
  std::uint64_t tag_between(const Held& held, std::size_t from, std::uint64_t id) const;
  std::optional<Secret32> joined(std::size_t member, const Bytes32& commitment);
  /// A mask of this member with a missing site has not been told.
  bool lacks_seed(std::size_t member, const Held& held) const;
  /// Too few shares of this member's own mask have been told.
  bool lacks_shares(std::size_t member) const;

  SecureSumRule rule_;
  std::uint64_t id_;
  Secret32 secret_;
  std::unique_ptr<MaskKeys> keys_;
  std::uint64_t generation_ = 0;
  std::size_t dimension_;
  std::vector<Member> members_;
  Round round_ = 0;                               // the latest opened round
  std::vector<std::uint32_t> quantized_;          // the model of the round
  std::vector<std::vector<SecretShare>> shares_;  // shares of own masks, by receiver and holder
  std::size_t clipped_ = 0;
  std::map<Round, Held> held_;
  std::optional<Summing> summing_;
};

}  // namespace sotto::sites
