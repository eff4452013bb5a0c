// What a member has of one step in one epoch: the chunks of its own part, the mean that it makes of
// them, the parts of the others, and which members have the whole mean.
//
// A plain state; one thread at a time. Memory: the encodings of n chunks and n parts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include <sotto/base/shared_bytes.h>
#include <sotto/sites/epochs/epoch_mean.h>
#include <sotto/sites/epochs/epoch_node.h>
#include <sotto/sites/epochs/epoch_setup.h>

namespace sotto::sites {

class StepWork {
 public:
  /// Adds a member's encoding of the own chunk; a second one of it is ignored.
  void add_chunk(std::uint16_t place, SharedBytes encoding) {
    chunks_.try_emplace(place, std::move(encoding));
  }
  /// Notes that another member's chunk came, from which on `grace` counts.
  void chunk_came(EpochTime now) { since_ = since_.value_or(now); }
  /// Encodings of the own chunk, by the member's place.
  const std::map<std::uint16_t, SharedBytes>& chunks() const { return chunks_; }
  /// Whether the own part may be made: all members' chunks came, or more than half of them and
  /// `grace` is over.
  bool can_make(std::size_t members, const std::optional<EpochTime>& grace, EpochTime now) const;

  /// Takes the own part, which is made once.
  void make(std::uint16_t own, MeanPart part);
  /// The own part; none: it is not made yet.
  const std::optional<MeanPart>& made() const { return made_; }
  /// Adds the part of a chunk's owner; a second one of it is ignored.
  void add_part(std::uint16_t place, MeanPart part) { parts_.try_emplace(place, std::move(part)); }
  /// Whether the part of this owner is there.
  bool has_part(std::uint16_t place) const { return parts_.contains(place); }
  /// The mean of all parts; none: some are missing.
  std::optional<StepMean> mean(Round step, std::size_t members) const;

  /// Notes the digest of the whole mean that a member has.
  void note_have(std::uint16_t place, const EpochDigest& digest) { haves_[place] = digest; }
  /// Digests of the whole mean, by the member's place.
  const std::map<std::uint16_t, EpochDigest>& haves() const { return haves_; }

  /// Whether the own gradient's chunks were sent.
  bool pushed() const { return pushed_; }
  /// Notes that they were.
  void note_pushed(EpochTime now) {
    pushed_ = true;
    said_ = now;
  }
  /// Whether chunks that were sent are to be sent again, if what they bring about has not come:
  /// once a pause is over, which doubles. They are long, and a channel that is up loses none: on a
  /// slow link they would stand in the way of themselves.
  bool say_again(EpochTime now) {
    const bool due = pushed_ && now - said_ >= pause_;
    if (due) {
      said_ = now;
      pause_ = std::min(2 * pause_, kLongestPause);
    }
    return due;
  }

 private:
  static constexpr EpochTime kLongestPause = 8 * kEpochAgain;

  std::map<std::uint16_t, SharedBytes> chunks_;
  std::optional<EpochTime> since_;  ///< when the first chunk of another member came
  std::optional<MeanPart> made_;
  std::map<std::uint16_t, MeanPart> parts_;
  std::map<std::uint16_t, EpochDigest> haves_;
  bool pushed_ = false;
  EpochTime said_{};  ///< when the chunks were sent last
  EpochTime pause_ = kEpochAgain;
};

}  // namespace sotto::sites
