// What the collectives of one link of keyed rows have in common: its ends, its codecs, what both
// ends remember, and the batches under way. One thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/groups/collective.h>
#include <sotto/groups/keyed_link.h>
#include <sotto/groups/keyed_memory.h>
#include <sotto/groups/row_codec.h>

namespace sotto {

/// What the collectives of one link have in common.
struct KeyedLink::Shared {
  /// Throws Error as KeyedLink.
  Shared(const GroupMember& at, const KeyedLinkOptions& chosen);

  bool sends() const { return member.group.position == options.from; }
  bool receives() const { return member.group.position == options.to; }
  bool is_end() const { return sends() || receives(); }
  /// The other end has what the row is a change of.
  bool comes_again(std::uint64_t key) const { return exact || memory.has(key); }
  std::size_t row_bytes(std::uint64_t key) const {
    return comes_again(key) ? later.row_bytes() : first.row_bytes();
  }
  std::size_t longest_row() const {
    return exact ? later.row_bytes() : std::max(later.row_bytes(), first.row_bytes());
  }
  /// The batch's rows, or gradients, that came.
  std::span<float> came_of(std::size_t batch) {
    return std::span(came[batch]).first(keys[batch].size() * options.width);
  }
  /// Row i of a batch under way, as both ends will hold it.
  std::span<float> held_of(std::size_t batch, std::size_t i) {
    return (receives() ? std::span(came[batch]) : std::span(sent))
        .subspan(i * options.width, options.width);
  }
  /// Notes a batch's keys, once they are found to be ones that it can have.
  Status take_keys(std::size_t batch, std::span<const std::uint64_t> given);

  GroupMember member;
  KeyedLinkOptions options;
  RowCodec later;
  RowCodec first;
  RowCodec back;
  bool exact;  ///< rows themselves are sent, and nothing is remembered
  KeyedMemory memory;
  KeyedLinkCounts counts;
  std::vector<std::vector<std::uint64_t>> keys;  ///< keys by batch
  std::vector<bool> under_way;                   ///< batches that were begun and are not there yet
  /// Rows at the receiver, and gradients at the sender, by batch.
  std::vector<std::vector<float>> came;
  std::vector<float> sent;  ///< rows of the batch that the sender encodes, as both ends hold them
  std::vector<std::uint64_t> sorted;  ///< keys of a batch, then the new ones of the others
};

}  // namespace sotto
