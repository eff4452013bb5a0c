// Which instruction sets host_ops() can use here, and a way to try each: for tests and benchmarks.
//
// Choosing one affects all threads; do it while no operation runs.
#pragma once

#include <cstdint>
#include <vector>

namespace sotto {

/// The instruction sets that sotto was compiled for and this processor has, best first.
std::vector<std::int64_t> host_targets();

/// Makes host_ops() use one of host_targets(), or again the best one for 0.
void use_host_target(std::int64_t target);

}  // namespace sotto
