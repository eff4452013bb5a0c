// A training of keyed_wire's model in the simulator, each stage on a node of its own. Pure
// functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sotto/groups/keyed_memory.h>
#include <sotto/trainers/data/dataset.h>

namespace sotto::bench {

inline constexpr std::size_t kExamples = 4096;  ///< for training
inline constexpr std::size_t kTests = 2000;     ///< for the accuracy

/// A way to send rows between stages.
struct Way {
  const char* name;        ///< how the table calls it
  const char* compressor;  ///< encodes rows on their way to the next stage
  const char* first;       ///< encodes the first rows of an example
  const char* back;        ///< encodes gradients on their way back
  bool keyed;              ///< whether an example's number is its key; else each visit has its own
  int stages;              ///< 2 or 3
  KeyedForm memory = KeyedForm::fp32;  ///< form of remembered rows
};

/// What came of a training.
struct StagedOutcome {
  double there = 0;     ///< bytes to the next stages, over all boundaries
  double back = 0;      ///< bytes of gradients, over all boundaries
  double bits = 0;      ///< the mean of an element on its way there
  double loss = 0;      ///< the mean on the examples for training
  double accuracy = 0;  ///< the share of right answers on those for tests
  double seconds = 0;   ///< virtual seconds
};

/// Trains for ten passes, over links of `megabits` a second and 10 ms. Throws std::runtime_error
/// when a node fails.
StagedOutcome train_stages(const Way& way, const Dataset& data, std::uint64_t seed,
                           double megabits);

}  // namespace sotto::bench
