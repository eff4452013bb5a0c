// How faults of a transport name exchanges and peers. Pure functions; thread-safe.
#pragma once

#include <span>
#include <string>

#include <sotto/base/exchange.h>
#include <sotto/base/status.h>
#include <sotto/comm/deadline.h>
#include <sotto/comm/transport.h>

namespace sotto::internal {

/// "round 7, phase 0, bucket 0"
std::string describe(const ExchangeTag& tag);
/// "1, 4, 5"
std::string list_ranks(std::span<const Rank> ranks);
/// The fault of a wait for peers that `deadline` has ended.
Status not_come(std::span<const Rank> ranks, const Deadline& deadline);

}  // namespace sotto::internal
