// The mean of a step of one model: a chunk from each member, and the digest by which members agree
// on it.
//
// Plain values, and a pure function.
#pragma once

#include <cstdint>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/shared_bytes.h>
#include <sotto/sites/epochs/epoch_node.h>

namespace sotto::sites {

/// The mean of one chunk.
struct MeanPart {
  std::vector<std::uint16_t> who{};  ///< places of the members that are in it, ascending
  SharedBytes encoding{};            ///< the mean, compressed
  bool operator==(const MeanPart&) const = default;
};

/// The mean of a step, whole.
struct StepMean {
  Round step = 0;                 ///< number of the step, from 1
  std::vector<MeanPart> parts{};  ///< parts by the place of their owners
  bool operator==(const StepMean&) const = default;
};

/// The mean of a step, and its digest.
struct WholeMean {
  StepMean mean{};       ///< the mean
  EpochDigest digest{};  ///< digest_of it
};

/// The digest of a mean, and of the learning rate and the further settings with which it is applied
/// (EpochSetup::step_settings).
EpochDigest digest_of(const StepMean& mean, double learning_rate, std::uint64_t settings = 0);

}  // namespace sotto::sites
