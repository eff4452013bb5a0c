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
#include <set>
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
  /// Notes the time from which on `grace` counts: when more than half of all members' chunks are
  /// there. It is not that of the first one, which may be of a member that gives its gradient in
  /// parts and has long to compute yet: others are not late by that.
  void chunk_came(std::size_t members, EpochTime now) {
    if (!since_ && 2 * chunks_.size() > members) {
      since_ = now;
    }
  }
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

  /// Notes that this chunk of the own gradient was sent.
  void note_sent(std::uint16_t chunk) { sent_.insert(chunk); }
  /// Whether it was.
  bool sent(std::uint16_t chunk) const { return sent_.contains(chunk); }
  /// Whether all chunks of the own gradient were sent.
  bool pushed() const { return pushed_; }
  /// Notes that they were.
  void note_pushed(EpochTime now) {
    pushed_ = true;
    said_ = now;
  }
  /// Whether chunks that were sent are to be sent again, if what they bring about has not come:
  /// once a pause after the last of them is over, which doubles. They are long, and a channel that
  /// is up loses none: on a slow link they would stand in the way of themselves.
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
  std::optional<EpochTime> since_;  ///< when more than half of all chunks were there
  std::optional<MeanPart> made_;
  std::map<std::uint16_t, MeanPart> parts_;
  std::map<std::uint16_t, EpochDigest> haves_;
  std::set<std::uint16_t> sent_;  ///< chunks of the own gradient
  bool pushed_ = false;
  EpochTime said_{};  ///< when the chunks were sent last
  EpochTime pause_ = kEpochAgain;
};

}  // namespace sotto::sites
