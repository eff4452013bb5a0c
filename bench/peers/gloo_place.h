// How Gloo's peers meet: through files in a folder that all of them see. One thread at a time.
#pragma once

#include <memory>
#include <string>

#include <gloo/context.h>

#include "place.h"

namespace sotto::peers {

/// Connects member `rank` of the group `name` to all of its `size` members. Throws what Gloo throws
/// when they are not there in time.
std::shared_ptr<gloo::Context> meet(const Place& place, const std::string& name, int rank,
                                    int size);

/// Returns when all members are there. Throws what Gloo throws when they are not in time.
void meet_again(const std::shared_ptr<gloo::Context>& context);

}  // namespace sotto::peers
