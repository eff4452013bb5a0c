// How the nodes of a run find the round after which none may go on, where they have a privacy
// budget. All nodes call it after connecting; one thread a node.
#pragma once

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/trainers/meetings/store_collectives.h>
#include <sotto/trainers/optimizer.h>

namespace sotto::internal {

/// The last round: `rounds`, or that after which the first node has spent its budget.
Result<Round> agree_on_privacy_end(const Optimizer& optimizer, StoreCollectives& collectives,
                                   Round rounds);

}  // namespace sotto::internal
