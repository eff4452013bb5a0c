// The strategies, each in a source file of its own. Constants; thread-safe.
#pragma once

#include <sotto/study/strategies/strategy.h>

namespace sotto::study::internal {

extern const Strategy kDataStrategy;
extern const Strategy kTiedStrategy;
extern const Strategy kShardedStrategy;
extern const Strategy kExpertStrategy;
extern const Strategy kPipelineStrategy;
extern const Strategy kGridStrategy;
extern const Strategy kRingStrategy;

}  // namespace sotto::study::internal
