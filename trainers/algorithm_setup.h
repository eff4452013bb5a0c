// From the settings of a job to one node's algorithm, for the Optimizer and the simulator.
// Thread safety: pure functions.
#pragma once

#include <memory>
#include <span>

#include <sotto/optim/algorithm.h>
#include <sotto/topology/topology.h>
#include <sotto/trainers/optimizer.h>

namespace sotto {

/// The graph of the job. Throws Error for one that cannot be.
std::shared_ptr<const Topology> make_job_topology(const OptimizerOptions& options);

/// The setup of node options.rank of options.nodes, for make_algorithm, without a run_id.
/// `parameters` must outlive the algorithm; `layout` is that of the task, empty: one tensor. Fills
/// in what `options` leaves to defaults: the whole specifications of algorithm and compressor.
/// Throws Error.
AlgorithmSetup make_algorithm_setup(OptimizerOptions& options, std::span<float> parameters,
                                    const ParameterLayout& layout,
                                    std::shared_ptr<const Topology> topology);

}  // namespace sotto
