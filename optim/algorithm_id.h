// The algorithms' numbers in the frame header. An id is never reused.
#pragma once

#include <cstdint>

namespace sotto {

/// Numbers in frame headers, under the registry's names.
enum class AlgorithmId : std::uint16_t {
  allreduce = 1,
  dpsgd = 2,
  dcd = 3,
  ecd = 4,
  deepsqueeze = 5,
  choco = 6,
  apmsqueeze = 7,
  onebit_adam = 8,
  pushsum = 9,
  d2 = 10,
  beer = 11,
  powersgd = 12,
  powergossip = 13,
  zero_one_adam = 14,
  onebit_lamb = 15,
  gossip_adam = 16,
  ef21 = 20,
  moniqua = 21,
  adpsgd = 22,
  robust = 23,
  qmean = 24,
  sparseloco = 25,
  dion = 26,
  demo = 27,
  lead = 28,
  sharded = 29,
  program = 30,  ///< not in the registry: programs are built by their users (groups/program.h)
};

/// The number itself.
constexpr std::uint16_t wire_id(AlgorithmId id) { return static_cast<std::uint16_t>(id); }

}  // namespace sotto
