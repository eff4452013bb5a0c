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
// A site is both: a client of the sums of all others (sum_client.h), and the receiver of its own
// (masked_sum.h). What it is told as one depends on what it does as the other: as a client it tells
// nothing before it has chosen, as a receiver, which sites are missing.
//
// A building block of Site, not for users. Plain state, without clocks or files. One
// thread at a time. Memory: two words an element, and one more for each parcel in work. Secrets,
// and what is derived of them or told of others' masks, are wiped as soon as they are of no more
// use (Secret32); the bytes of messages are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/sites/core/message.h>
#include <sotto/sites/core/parcel_stream.h>
#include <sotto/sites/core/sums/masked_parcel.h>
#include <sotto/sites/core/sums/masked_sum.h>
#include <sotto/sites/core/sums/secret_shares.h>
#include <sotto/sites/core/sums/secure_sum_rule.h>
#include <sotto/sites/core/sums/sum_client.h>
#include <sotto/sites/core/sums/sum_group.h>

namespace sotto::sites {

class SecureSum {
 public:
  /// A site `name` with a model of `dimension` elements; its process draws its masks from `secret`.
  SecureSum(SecureSumRule rule, std::string_view name, const Bytes32& secret,
            std::size_t dimension);
  SecureSum(const SecureSum&) = delete;
  SecureSum& operator=(const SecureSum&) = delete;

  /// u: the fewest peers with parcels for a sum.
  std::size_t least_members() const { return group_.least_members(); }
  /// The longest payload for this rule.
  std::size_t max_payload() const { return max_masked_bytes(client_.words().size()); }
  /// Fault::malformed for what payload_for cannot have made.
  Status check_payload(std::span<const std::byte> payload) const {
    return check_masked(payload, client_.words().size());
  }

  // The sites that take part.

  /// The peers by name, in the order of the list; keys of those that were there stay, rounds under
  /// way are given up.
  void know(std::span<const std::string> names);
  /// The key that peers must be told when they are met.
  const Bytes32& public_key() const { return group_.public_key(); }
  /// All keys and masks are drawn anew, as rounds may be made again.
  void begin_anew();
  /// The key of a peer's process. False for one that everybody could have made. One that another
  /// site has gives other masks, which its teller does not know.
  bool take_key(std::size_t peer, const Bytes32& key) { return group_.take_key(peer, key); }

  // As a client.

  /// A round begins, with this model; it is later than all before. Rounds before the last few are
  /// forgotten.
  void open(Round round, std::span<const float> model);
  /// The payload for a peer; null while fewer than u − 1 others share masks with this site.
  Payload payload_for(std::size_t receiver) const { return client_.payload_for(receiver); }
  /// A payload came, which check_payload passed: its shares are kept. Returns answers that are due
  /// to peers that asked before.
  SumAnswers arrived(std::size_t from, std::span<const std::byte> payload) {
    return client_.arrived(from, payload);
  }
  /// The answer to a peer: none while this site has not closed that round, empty if it must not be
  /// told, or has asked about a round that this process knows nothing of. Fault::unexpected for a
  /// question that no honest site asks.
  Result<std::optional<std::vector<RevealedMask>>> answer(std::size_t receiver,
                                                          const Unmask& question) {
    return client_.answer(receiver, question);
  }
  /// The answers that have waited until this round was closed.
  SumAnswers answers_due() { return client_.answers_due(); }
  /// Elements of the own model that were beyond the range in the latest round.
  std::size_t clipped() const { return client_.clipped(); }

  // As a receiver.

  /// The sites to be summed, from now on fixed: those of which a payload of this round came. None
  /// if they are too few.
  std::optional<Unmask> close();
  /// The payload of one of these; others do not count.
  void add(std::size_t from, std::span<const std::byte> payload) {
    if (sum_) {
      sum_->add(from, payload);
    }
  }
  /// An answer of a peer.
  void take(std::size_t from, const Masks& answer) {
    if (sum_) {
      sum_->take(from, answer);
    }
  }
  /// The peers that still owe answers.
  std::vector<std::size_t> owed() const { return sum_ ? sum_->owed() : std::vector<std::size_t>(); }
  /// The sites in the set, by their places.
  std::vector<std::size_t> members() const {
    return sum_ ? sum_->members() : std::vector<std::size_t>();
  }
  /// Ends the round: the mean of this site's model and those of the set, into `mean`, of d
  /// elements, if the outcome is `summed`.
  SumOutcome finish(std::span<float> mean);

 private:
  std::uint64_t generation_ = 0;  // how often all was drawn anew
  Secret32 secret_;               // key from which this generation's masks are drawn
  SumGroup group_;
  SumClient client_;
  std::optional<MaskedSum> sum_;  // of the round that is closed
};

}  // namespace sotto::sites
