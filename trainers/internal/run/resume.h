// How the nodes of a resumed run find the round to go on from: the newest of which all of them have
// a whole checkpoint. Every node calls it once; one thread a node.
#pragma once

#include <functional>
#include <string>

#include <sotto/base/status.h>
#include <sotto/trainers/files/checkpoint.h>
#include <sotto/trainers/meetings/store_collectives.h>

namespace sotto::internal {

/// Throws Error, on all nodes alike, when there is no such round, or a checkpoint was made under
/// another `agreement` or is later than the run's last round. Node 0 warns of damaged files that
/// are passed over.
Result<Round> agree_on_round(const CheckpointFolder& folder, const std::string& agreement,
                             Round rounds, StoreCollectives& collectives,
                             const std::function<void(const std::string&)>& warning);

}  // namespace sotto::internal
