// The collectives on vectors: broadcast, reduce, all-gather, reduce-scatter, all-reduce and ring
// shift, each a schedule (block_schedule.h) that one class runs.
//
// An encoding that several members are to hold is passed on byte for byte and never encoded anew;
// its maker takes it, too. All of them are then equal to the bit, one encoding away from the
// original. A sum is encoded again at each hop of a ring, and its error would grow with the ring:
// sums are compressed in the direct form only, where they are taken in the order of positions.
//
// With p members, d elements and |C(d)| bytes an encoding, the busiest member sends
//
// | collective              | phases      | frames      | payload                |
// | ----------------------- | ----------- | ----------- | ---------------------- |
// | broadcast, direct       | 1           | p − 1       | (p − 1) |C(d)|         |
// | broadcast, tree         | ⌈log₂ p⌉    | ⌈log₂ p⌉    | ⌈log₂ p⌉ |C(d)|        |
// | reduce                  | 1           | 1           | |C(d)|                 |
// | all-gather, direct      | 1           | p − 1       | (p − 1)/p |C(d)|       |
// | all-gather, ring        | p − 1       | p − 1       | (p − 1)/p |C(d)|       |
// | reduce-scatter          | as all-gather                                        |
// | all-reduce              | both                                                 |
// | ring shift              | 1           | 1           | |C(d)|                 |
//
// and 64 bytes a frame. Memory: frames, one encoding, and with feedback a float for each element
// that this member encodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/compress/compressor.h>
#include <sotto/groups/block_schedule.h>
#include <sotto/groups/collective.h>
#include <sotto/groups/encoding.h>

namespace sotto {

/// What no group of a number exceeds, where the vectors of such groups differ in length.
struct VectorBound {
  std::size_t elements = 0;  ///< elements of the longest vector; 0: all are as long as this one
  std::size_t block = 0;     ///< elements of the longest block that travels alone
};

class VectorCollective final : public Collective {
 public:
  /// Runs `schedule`, the member's part, which `name` names for messages and the signature. Throws
  /// Error (field "compressor") for an encoding that does not fit the data, or the form. The bound
  /// stands in the signature in place of the elements, so that all nodes have one list of stages.
  VectorCollective(GroupMember member, std::string name, BlockSchedule schedule,
                   const Encoding& encoding, const VectorBound& bound = {});

  /// Starts with `v`, which has all elements, is changed in place and must stay where it is until
  /// the collective is done. Elsewhere than in the blocks that this member ends up with, v is as
  /// before, or holds partial sums.
  void begin(std::span<float> v);
  /// The elements of v that this member has at the end of a reduce-scatter.
  Chunk own_block() const;

  std::string signature() const override;
  int phases() const override { return schedule_.phases; }
  std::uint64_t parts() const override;
  ExchangeVolume volume() const override;
  bool busy() const override { return open() || at_ < schedule_.steps.size(); }
  bool on_last_phase() const override { return open() && at_ + 1 == schedule_.steps.size(); }
  Result<bool> next_exchange(Exchange& out) override;
  Status complete(const Exchange& exchange) override;
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

 private:
  /// Frames to all receivers carry the same bytes.
  bool one_frame(const ScheduleStep& step) const { return step.transfer != BlockTransfer::sum; }
  std::size_t own_index() const { return static_cast<std::size_t>(position()); }
  /// Index of the block that this member sums.
  std::size_t summed_index() const { return schedule_.blocks.size() == 1 ? 0 : own_index(); }
  /// Whether this member takes the sum of a step.
  bool sums(const ScheduleStep& step) const {
    return step.transfer == BlockTransfer::sum && !step.receives.empty();
  }
  std::span<float> block(std::size_t index) const { return schedule_.blocks[index].of(v_); }
  bool exact() const { return is_exact(*compressor_); }
  std::size_t elements() const;
  /// Encodes block `index` of the step for the hop of this number.
  Result<std::size_t> encode(std::size_t index, std::size_t hop, std::span<std::byte> out);
  /// Writes the payload that all receivers of a step get.
  Result<std::size_t> make_common(std::size_t index, std::span<std::byte> out);
  Status post(const ScheduleStep& step);
  /// y ← the block in `payload`.
  Status replace(std::span<const std::byte> payload, std::span<float> y) const;
  Status take_sum(const ScheduleStep& step);
  Status take_blocks(const ScheduleStep& step);
  /// Keeps a payload that the next step passes on.
  void hold(std::size_t index, std::span<const std::byte> payload);

  std::string name_;
  BlockSchedule schedule_;
  VectorBound bound_;
  Encoding encoding_;
  std::unique_ptr<Compressor> compressor_;
  std::vector<Edge> to_;    // receivers in the step under way
  std::vector<Edge> from_;  // senders in it
  std::vector<Parcel> parcels_;
  std::vector<std::size_t> elements_in_;
  std::vector<std::byte> own_;  // encoding of this member's summand of its own block
  std::size_t own_bytes_ = 0;
  std::vector<std::byte> held_;  // encoding that is passed on
  std::size_t held_bytes_ = 0;
  std::size_t held_block_;        // block of that encoding; none: the number of blocks
  std::vector<float> error_;      // error of what is summed, or broadcast
  std::vector<float> own_error_;  // error of the own block, as it is published
  std::span<float> v_;
  std::size_t at_;  // number of the next step
};

/// How a collective on vectors is set up.
struct VectorOptions {
  std::size_t elements = 0;
  CollectiveForm form = CollectiveForm::direct;
  Encoding encoding = {};
  /// Elements of a row: all-gather and reduce-scatter cut the vector between rows only. It divides
  /// the elements.
  std::size_t row = 1;
  VectorBound bound = {};  ///< of all groups of this number, where their vectors differ in length
};

/// The vector of the member at position `root` goes to all. Throws Error (field "root") for one
/// that is none, (field "form") for a ring, and as VectorCollective.
std::unique_ptr<VectorCollective> make_broadcast(GroupMember member, const VectorOptions& options,
                                                 int root);
/// The sum of all v is at the member at position `root`; the others' v stay as they are. Throws
/// Error (field "root") for one that is none, (field "form") for another form than direct, and as
/// VectorCollective.
std::unique_ptr<VectorCollective> make_reduce(GroupMember member, const VectorOptions& options,
                                              int root);
/// Chunk i of v, which the member at position i has, goes to all. Throws Error (field "form") for
/// a tree, and as VectorCollective; so do the next two.
std::unique_ptr<VectorCollective> make_all_gather(GroupMember member, const VectorOptions& options);
/// Chunk i of the sum of all v is at the member at position i.
std::unique_ptr<VectorCollective> make_reduce_scatter(GroupMember member,
                                                      const VectorOptions& options);
/// All hold the sum of all v, equal to the bit.
std::unique_ptr<VectorCollective> make_all_reduce(GroupMember member, const VectorOptions& options);
/// v goes to the member `by` positions on. Throws Error as VectorCollective; the form is not used.
std::unique_ptr<VectorCollective> make_ring_shift(GroupMember member, const VectorOptions& options,
                                                  int by);

/// The form that takes fewer latencies without more bytes than the other at the busiest member: a
/// broadcast's is direct up to 3 members, else a tree; others are direct up to 16 members, else a
/// ring, and direct in any case where sums are compressed.
CollectiveForm usual_broadcast_form(int members);
/// As usual_broadcast_form, for the other collectives.
CollectiveForm usual_form(int members, const Encoding& encoding, bool sums);

}  // namespace sotto
