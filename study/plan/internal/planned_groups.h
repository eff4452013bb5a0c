// Which nodes are to be groups of two levels: those between which links are quick, such as the
// machines of a site. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include <sotto/study/scenario/scenario.h>

namespace sotto::study {

/// Groups as `--groups` takes them, "0-3;4-7": the parts of the network within which nodes reach
/// each other, perhaps through others of the part, by links that carry a model of `model_bytes` in
/// a quarter of the time, or less, of any link between parts. Only parts of one size, of two nodes
/// or more, up to two levels, the smallest parts first. None beyond 64 nodes.
std::vector<std::string> planned_groups(const Scenario& scenario, double model_bytes);

}  // namespace sotto::study
