// Attention over a sequence whose positions lie at different nodes: blocks of keys and values
// travel round a ring, and each node lets its own queries see them.
//
// Source: Liu et al. 2023, "Ring Attention with Blockwise Transformers for Near-Infinite Context"
// (arXiv:2310.01889). The arithmetic of a block is that of block_attention.h: the result is exact
// but for rounding, whose order depends on the number of nodes.
//
// The sequence of T positions is cut into 2 p pieces (chunks.h), and node r of p has the pieces r
// and 2 p − 1 − r. In a causal sequence every node then has as much to do, which contiguous pieces
// would not give (the last of p would compute nearly twice the mean). A node has its rows of
// queries, keys and values of the first piece, then those of the second.
//
// In step s = 0 … p − 1 node r has the keys and values of node r − s. Backwards the gradients at
// them travel with them, and one hop more, home. Frames and elements that a node sends, for h =
// heads × width, if 2 p divides T:
//
// | pass     | frames          | elements                |
// | -------- | --------------- | ----------------------- |
// | forward  | p − 1           | 2 (p − 1)/p · T h       |
// | backward | (p − 1) + p     | (2 (p − 1)/p + 2) · T h |
//
// (p = 1 sends nothing.) A hop is a phase, and computation does not hide behind it. Memory besides
// the caller's rows: the keys and values of one node, gradients at them, their encodings, two
// frames, and what BlockAttention has; nothing grows with T², and all but a part of the last with
// T/p.
//
// Compression: keys and values are activations without a key (encoding.h): exact, 16 bits, or
// unbiased in 8 or more, each row with a scale of its own. They are encoded once by their owner,
// who computes with what it sends; both passes send the same bytes. Gradients are sums that are
// added to at each hop, and go as they are.
//
// It is for memory: a sequence that does not fit one node. It sends more than data parallelism
// whatever the sizes (docs/groups.md). One sequence at a time. One thread at a time; allocates in
// the constructor, and in `list_…`.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sotto/groups/program.h>
#include <sotto/groups/programs/block_attention.h>
#include <sotto/groups/ring_hop.h>

namespace sotto {

/// A layer's attention, the same at all nodes.
struct RingAttentionOptions {
  std::string name = "attention";   ///< name in the names of its stages
  std::string axis = "ring";        ///< axis of the grid along which the sequence is cut
  std::size_t positions = 1;        ///< T
  std::size_t heads = 1;            ///< heads, side by side in a row
  std::size_t width = 1;            ///< elements of a head
  bool causal = true;               ///< position t sees positions 0 … t only; else all see all
  std::string compressor = "none";  ///< compressor of keys and values
  /// No attention is computed and results are void: for plans, which ask what travels and how long.
  bool exchanges_only = false;
};

class RingAttention {
 public:
  /// Throws Error (fields "positions", "heads" and "width") for none of these, or rows too long,
  /// (field "compressor") as RowCodec, and as NodeGrid::group for the axis.
  RingAttention(const ProgramNode& node, RingAttentionOptions options);
  RingAttention(const RingAttention&) = delete;  // its stages point to it
  RingAttention& operator=(const RingAttention&) = delete;

  /// The positions of this node's rows: those of its first piece, then those of its second.
  std::array<Chunk, 2> pieces() const { return pieces_of(position_); }
  /// Number of this node's rows, each of heads × width elements, head by head.
  std::size_t rows() const { return rows_of(position_); }

  /// Appends the stages of the pass forward. The spans have rows() × heads × width elements and
  /// stay where they are as long as the program runs.
  void list_forward(const AttentionInput& in, std::span<float> out,
                    std::vector<ProgramStage>& stages);
  /// Appends the stages of the pass backward, behind those of the pass forward, listed before, at
  /// the same rows and its output; `gradient` is overwritten.
  void list_backward(const AttentionInput& in, std::span<const float> out,
                     std::span<const float> dout, const AttentionGradient& gradient,
                     std::vector<ProgramStage>& stages);

  /// What the stages listed so far carry in a round.
  ExchangeVolume volume() const;
  /// Bytes that the object holds besides the caller's rows: all that is listed so far, with its
  /// frames.
  std::size_t room_bytes() const;

 private:
  using Stages = std::vector<ProgramStage>;

  std::size_t elements() const { return options_.heads * options_.width; }
  /// The node whose keys and values are here in step s, and the number of its rows.
  int source(int step) const { return (position_ - step + members_) % members_; }
  std::array<Chunk, 2> pieces_of(int node) const;
  std::size_t rows_of(int node) const;
  std::size_t most_rows() const;
  /// The tiles of this node's queries and the keys of another one.
  std::vector<AttentionTile> tiles_of(int from) const;
  /// Number of pairs of a query and a key that it sees, in a step.
  double pairs(int step) const;
  /// The keys and values that are here in a step.
  AttentionInput here(int step, std::span<const float> q) const;
  void check_rows(const AttentionInput& in) const;

  void list_stage(const std::string& what, double flops, std::function<Status()> compute,
                  Collective* collective, Stages& stages) const;
  /// A hop of what is here in a step, by `codec`.
  RingHop& add_hop(const std::string& what, int step, RowCodec& codec);
  /// This node's keys and values are here, exactly.
  void stay(const AttentionInput& in);
  /// They are here, as others will have them.
  Status begin_round_trip(const AttentionInput& in, RingHop* first);
  /// They are here once more, with the bytes of the pass forward.
  Status repeat_round_trip(const AttentionInput& in);
  /// Sends on what is here in a step.
  void pass_on(RingHop& hop, int step);
  Status pass_gradient_on(RingHop& hop, int step);
  void attend(const AttentionInput& in, std::span<float> out, int step);
  /// The output, once all keys have been seen.
  Status finish(std::span<float> out);
  void attend_backward(const AttentionInput& in, std::span<const float> dout,
                       const AttentionGradient& gradient, int step);

  RingAttentionOptions options_;
  GroupMember member_;
  int position_ = 0;
  int members_ = 1;
  RowCodec codec_;
  RowCodec exact_;
  BlockAttention block_;
  std::vector<std::vector<AttentionTile>> tiles_;  // by step
  std::vector<float> moving_;                      // keys, then values, that are here
  std::vector<float> moving_gradient_;             // gradients at them
  std::vector<std::byte> own_bytes_;               // this node's keys and values, encoded
  std::vector<std::byte> moving_bytes_;
  std::vector<std::byte> gradient_bytes_;
  std::vector<std::unique_ptr<RingHop>> hops_;
};

}  // namespace sotto
