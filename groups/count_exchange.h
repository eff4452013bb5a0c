// Counts that the members of a group keep together: each has changed its own copy, and all add what
// all have changed. Nothing is lost, and the order of members makes no difference.
//
//   n ← n + Σ_j (m_j − n),   m_j: member j's copy, n: what all had agreed on
//
// Two forms (CountForm): in `gather` each member sends its changes to all others; in `scatter` each
// sends the changes of chunk q to the member at position q, which adds them up and sends the sum to
// all. Frames hold changes alone, with their places (count_codec.h).
//
// | form    | phases | frames a node sends | bytes a node sends, B(c): c changes, as encoded    |
// | ------- | ------ | ------------------- | -------------------------------------------------- |
// | gather  | 1      | p − 1               | (p − 1) B(own changes)                             |
// | scatter | 2      | 2 (p − 1)           | about B(own) + (p − 1)/p B(changes of any member)  |
//
// So gather is for few members, or members that change the same counts; `choose` takes gather for
// p ≤ 3. Memory: room for the longest frames, p out and p in, of up to 6 bytes a count of a chunk
// or, with gather, of all; less where `most` is small. The totals must stay below 2³¹.
//
// Counts tell what a node's data are: those of words, say, which words its documents have. No noise
// hides that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <sotto/groups/collective.h>
#include <sotto/optim/exchange/chunks.h>

namespace sotto {

/// How changes of counts go round.
enum class CountForm { choose, gather, scatter };

/// The counts that a CountExchange is for, the same at all members.
struct CountRoom {
  std::size_t counts = 1;
  /// Counts that a member changes in a round, at most.
  std::size_t most = std::numeric_limits<std::size_t>::max();
  CountForm form = CountForm::choose;
};

class CountExchange final : public Collective {
 public:
  /// Throws Error (field "counts") for none or more than kMostDimension.
  CountExchange(GroupMember member, const CountRoom& room);

  /// Starts. `agreed` is what all have, `own` this member's copy with its changes; both become what
  /// all have when the collective is done, and must stay until then. No more than room().most
  /// counts differ (an invariant, checked).
  void begin(std::span<std::int32_t> agreed, std::span<std::int32_t> own);
  /// The room that it was made with, its form chosen.
  const CountRoom& room() const { return room_; }
  /// Bytes of the frames that this node sent in the last exchange that is done, to all others.
  std::size_t sent_bytes() const { return sent_bytes_; }

  std::string signature() const override;
  int phases() const override;
  std::uint64_t parts() const override { return 0; }
  /// The most that can be sent and received.
  ExchangeVolume volume() const override;
  bool busy() const override { return open() || begun_; }
  bool on_last_phase() const override { return open() && phase_ + 1 == phases(); }
  Result<bool> next_exchange(Exchange& out) override;
  /// Fault::malformed also where a count is negative in the end, with two members or more.
  Status complete(const Exchange& exchange) override;

 private:
  Chunk chunk(int position) const { return chunk_of(room_.counts, members(), position); }
  /// The counts that a frame of this phase from the member at `from` to that at `to` is about.
  Chunk carried(int from, int to) const;
  /// The most counts that change in a frame of this phase about these.
  std::size_t most_carried(const Chunk& counts) const;
  Parcel encode(const Chunk& counts, std::span<std::byte> out) const;
  void post_own();
  void post_chunks();
  void take();
  Status end();

  CountRoom room_;
  std::vector<Edge> others_;
  std::vector<Parcel> parcels_;
  std::vector<std::size_t> elements_in_;
  std::span<std::int32_t> agreed_;
  std::span<std::int32_t> own_;
  int phase_ = 0;
  bool begun_ = false;  // an exchange is to be posted
  std::size_t sending_bytes_ = 0;
  std::size_t sent_bytes_ = 0;
};

}  // namespace sotto
