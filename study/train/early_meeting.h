// What the nodes of a launched job tell each other before their run, in a session of its own: each
// then plans the same run. One call at a time.
#pragma once

#include <functional>
#include <string>

#include <sotto/base/status.h>
#include <sotto/trainers/meetings/store_collectives.h>
#include <sotto/trainers/optimizer.h>

namespace sotto::study {

/// Makes the store where the job's nodes meet, unless `options` have it; the run then uses it.
void open_store(OptimizerOptions& options);

/// What `talk` learns of the other nodes. All nodes of the job call it, in the same order.
Result<std::string> meet_early(OptimizerOptions& options,
                               const std::function<Result<std::string>(StoreCollectives&)>& talk);

}  // namespace sotto::study
