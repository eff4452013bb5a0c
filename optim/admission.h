// Admission checks a setup against the requirements of an algorithm's theory before one is made.
// Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include <sotto/optim/algorithm.h>
#include <sotto/optim/registry.h>

namespace sotto {

/// Checks `setup` against the needs of `info` and fills in open fields: the layout, the default
/// compressor and derived hyperparameters. Throws Error that names the field, the value and a value
/// that would do. With setup.allow_contract_violation a contract or a property of the graph that
/// fails is let through, but nothing that cannot run at all. `warnings` may be null; the graph's
/// spectrum is computed only for them.
void admit(const AlgorithmInfo& info, AlgorithmSetup& setup, std::vector<std::string>* warnings);

/// Throws Error (field `algorithm`) where nodes have weights and a hyperparameter compares what
/// they send, as if all counted alike.
void admit_weights_beside_hyperparameters(const AlgorithmInfo& info, const AlgorithmSetup& setup);

}  // namespace sotto
