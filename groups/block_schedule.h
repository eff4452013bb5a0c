// Which member sends which block of a vector to whom, and when: the schedules of the collectives on
// vectors. What runs and what `volume()` counts is one and the same schedule.
//
// Sources: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", Int. J. High Performance Computing Applications 19(1), 2005 (binomial broadcast, ring
// all-gather, pairwise reduce-scatter).
//
// Pure functions over positions 0 … p − 1 in a group of p members; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <sotto/optim/exchange/chunks.h>

namespace sotto {

/// The paths that blocks take.
enum class CollectiveForm : std::uint8_t {
  direct,  ///< each receiver hears the block's maker: one phase, p − 1 frames
  tree,    ///< each phase doubles the holders: ⌈log₂ p⌉ phases
  ring,    ///< blocks go from neighbour to neighbour: p − 1 phases of a frame each
};

/// What becomes of a block that a member sends or receives.
enum class BlockTransfer : std::uint8_t {
  sum,       ///< the receiver sums the blocks of all members in their order, its own among them
  add,       ///< the receiver adds the block to its own
  publish,   ///< all who receive it hold what the maker's encoding says, and so does the maker
  exchange,  ///< the receiver holds it, and the sender another one
};

/// One block on its way to or from a member.
struct BlockHop {
  int position = 0;
  std::size_t block = 0;
};

/// What one member does in one phase.
struct ScheduleStep {
  int phase = 0;
  BlockTransfer transfer = BlockTransfer::publish;
  std::vector<BlockHop> sends;     ///< hops to others, by position
  std::vector<BlockHop> receives;  ///< hops from others, by position
};

/// One member's part of a collective.
struct BlockSchedule {
  int phases = 0;                   ///< phases that all members go through
  std::vector<Chunk> blocks;        ///< parts of the vector
  std::vector<ScheduleStep> steps;  ///< phases in which this member takes part
};

/// The member at `root` gives its vector of `elements` to all, directly or by a tree.
BlockSchedule broadcast_schedule(CollectiveForm form, int members, int position, int root,
                                 std::size_t elements);
/// Chunk i of the vector (chunks.h), which the member at i has, goes to all; direct or ring.
BlockSchedule all_gather_schedule(CollectiveForm form, int members, int position,
                                  std::size_t elements);
/// All members' vectors are summed at the member at `root`, directly.
BlockSchedule reduce_schedule(int members, int position, int root, std::size_t elements);
/// Chunk i of all members' vectors is summed at the member at i; direct or ring.
BlockSchedule reduce_scatter_schedule(CollectiveForm form, int members, int position,
                                      std::size_t elements);
/// The schedule of reduce-scatter, and then that of all-gather.
BlockSchedule all_reduce_schedule(CollectiveForm form, int members, int position,
                                  std::size_t elements);
/// The vector goes to the member `by` positions on, modulo the members.
BlockSchedule ring_shift_schedule(int members, int position, int by, std::size_t elements);

}  // namespace sotto
