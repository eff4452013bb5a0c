// A client of secure sums (secure_sum.h): a site that masks its model for each receiver, holds the
// shares of the others' masks, and tells a receiver what it needs to take the masks off.
//
// What is told depends on which sites this one has chosen for its own sum, as a receiver: nothing
// is told before close() says so, and to those alone that chose alike.
//
// A building block of SecureSum, not for users. Plain state, without clocks or files. One thread at
// a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/sites/core/message.h>
#include <sotto/sites/core/parcel_stream.h>
#include <sotto/sites/core/sums/masked_parcel.h>
#include <sotto/sites/core/sums/secret_shares.h>
#include <sotto/sites/core/sums/sum_group.h>

namespace sotto::sites {

/// Answers for receivers, by their places.
using SumAnswers = std::vector<std::pair<std::size_t, Masks>>;

class SumClient {
 public:
  /// What came in front of the parcels of a round, by sender.
  using Headers = std::map<std::size_t, MaskedHeader>;

  /// A site of this group, which outlives the object, with a model of `dimension` elements. Its own
  /// masks are drawn from `secret`.
  SumClient(const SumGroup& group, const Bytes32& secret, std::size_t dimension);

  /// As SecureSum::begin_anew: own masks are drawn from this secret from now on.
  void begin_anew(const Bytes32& secret);
  /// Gives up the rounds under way.
  void forget();

  /// As SecureSum::open.
  void open(Round round, std::span<const float> model);
  /// As SecureSum::payload_for.
  Payload payload_for(std::size_t receiver) const;
  /// As SecureSum::arrived.
  SumAnswers arrived(std::size_t from, std::span<const std::byte> payload);
  /// As SecureSum::answer.
  Result<std::optional<std::vector<RevealedMask>>> answer(std::size_t receiver,
                                                          const Unmask& question);
  /// As SecureSum::answers_due.
  SumAnswers answers_due();

  /// The round that was opened last; 0: none.
  Round round() const { return round_; }
  /// The model of that round on the grid, and the sentinels: this site's own part of a sum.
  std::span<const std::uint32_t> words() const { return words_; }
  /// What came of that round; null: it is not under way.
  const Headers* headers() const;
  /// The site's own sum of that round is without these sites, from now on.
  void close(std::vector<std::uint64_t> missing);
  /// As SecureSum::clipped.
  std::size_t clipped() const { return clipped_; }

 private:
  /// A round of this process.
  struct Held {
    bool opened = false;
    /// Secrets of the masks as in the payloads, by member.
    std::vector<std::optional<Secret32>> shared;
    Headers headers;
    bool closed = false;
    /// Ids of the sites that this site chose as missing; only in closed rounds.
    std::vector<std::uint64_t> missing;
    /// Questions that came before the round was closed, by receiver.
    std::map<std::size_t, Unmask> questions;
    std::vector<std::size_t> askers;  ///< receivers that got an answer
  };

  /// b of this site for a receiver.
  Secret32 own_mask(Round round, std::uint64_t receiver) const;
  /// The shares of that mask, by the places of their holders.
  std::vector<SecretShare> shares_for(Round round, std::size_t receiver) const;
  /// The share that `from` gave this site of its mask for a receiver; null: none.
  const Bytes32* share_of(const Held& held, std::size_t from, std::size_t receiver) const;
  /// Masks and shares for a receiver whose sum is without `missing`.
  std::vector<RevealedMask> reveal(const Held& held, Round round, std::size_t receiver,
                                   std::span<const std::uint64_t> missing) const;

  const SumGroup& group_;
  Secret32 secret_;
  Round round_ = 0;
  std::vector<std::uint32_t> words_;
  std::vector<std::vector<SecretShare>> shares_;  // shares of own masks, by receiver and holder
  std::size_t clipped_ = 0;
  std::map<Round, Held> held_;
};

}  // namespace sotto::sites
