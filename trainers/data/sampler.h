// Which examples a node trains on in which round.
//
// The node walks through its shard in shuffled order, with a new order for every pass; round t
// takes positions t B … (t + 1) B − 1 of that endless walk, so a batch may run over the end of one
// pass into the next. The answer depends on (shard, batch, seed, rank, round) alone: a resumed run
// sees the data that it would have seen.
//
// Thread safety: one thread at a time (the order of the current pass is cached). Owns its shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sotto/base/ids.h>

namespace sotto {

class Sampler {
 public:
  /// Requires a shard that is not empty and batch > 0.
  Sampler(std::vector<std::uint32_t> shard, std::size_t batch, std::uint64_t seed, Rank rank);

  /// The examples of `round`; valid until the next call. Allocates nothing.
  std::span<const std::uint32_t> batch(Round round);

 private:
  void shuffle(std::uint64_t pass);

  std::vector<std::uint32_t> shard_;
  std::uint64_t seed_;
  Rank rank_;
  std::vector<std::uint32_t> order_;  // the shard in the order of pass_
  std::uint64_t pass_ = 0;
  std::vector<std::uint32_t> batch_;
};

}  // namespace sotto
