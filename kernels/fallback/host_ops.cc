// What host_ops() is when sotto is built without Highway.
#include "../host/targets.h"
#include "../ops.h"

namespace sotto {

const Ops& host_ops() { return reference_ops(); }

std::vector<std::int64_t> host_targets() { return {0}; }

void use_host_target(std::int64_t /*target*/) {}

}  // namespace sotto
