// The gate in front of every algorithm: does this setup fit what the theory asks for?
// Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include <sotto/optim/algorithm.h>
#include <sotto/optim/registry.h>

namespace sotto {

/// Checks `setup` against what `info` needs and fills in what was left open: the layout, the
/// default compressor and derived hyperparameters. Throws Error naming the field, the value and
/// what would do. With setup.allow_contract_violation a contract or a property of the graph that
/// fails is let through, but nothing that cannot run at all. `warnings` may be null; the graph's
/// spectrum is computed only for them.
void admit(const AlgorithmInfo& info, AlgorithmSetup& setup, std::vector<std::string>* warnings);

}  // namespace sotto
