// Identifiers shared by every layer. Plain integers; nothing here owns or allocates.
#pragma once

#include <cstdint>

namespace sotto {

/// A node's number in the job, 0 … n−1.
using Rank = std::int32_t;

/// A communication round, counted from 0.
using Round = std::uint64_t;

}  // namespace sotto
