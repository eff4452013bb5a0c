// Which examples a node trains on when one example's presence is to be hidden: each one is in a
// batch with the same probability, on its own and in every round anew, as the accountant assumes
// (gaussian_rdp.h). The coins are secret; with coins that others know there is no amplification by
// sampling. A batch may be empty, and its size is private.
//
// Thread safety: one thread at a time. Owns its shard and its key.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/secret_stream.h>

namespace sotto {

class PoissonSampler {
 public:
  /// Requires 0 < rate ≤ 1.
  PoissonSampler(std::vector<std::uint32_t> shard, double rate, const SecretKey& key);

  /// The examples of `round`, in the shard's order; valid until the next call. A function of (key,
  /// round).
  std::span<const std::uint32_t> batch(Round round);

 private:
  std::vector<std::uint32_t> shard_;
  std::uint64_t threshold_;  // a coin below it is a hit
  bool all_;
  SecretKey key_;
  std::vector<std::uint32_t> batch_;
};

}  // namespace sotto
