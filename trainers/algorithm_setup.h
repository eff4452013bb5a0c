// From the settings of a job to one node's algorithm, for the Optimizer and the simulator.
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <sotto/optim/algorithm.h>
#include <sotto/topology/topology.h>
#include <sotto/trainers/optimizer.h>

namespace sotto {

/// The graph of the job. Throws Error for one that cannot be.
std::shared_ptr<const Topology> make_job_topology(const OptimizerOptions& options);

/// `options` with what they leave to defaults filled in: the whole specifications of algorithm,
/// compressor and attack, and the number of buckets. `parameters` is the model's length; `layout`
/// is that of the task, empty: one tensor. The result resolves to itself. Throws Error.
OptimizerOptions resolved(OptimizerOptions options, std::size_t parameters,
                          const ParameterLayout& layout);

/// The setup of node options.rank of options.nodes, for make_algorithm, without a run_id.
/// `options` must be `resolved` with this layout; `parameters` must outlive the algorithm. Throws
/// Error.
AlgorithmSetup make_algorithm_setup(const OptimizerOptions& options, std::span<float> parameters,
                                    const ParameterLayout& layout,
                                    std::shared_ptr<const Topology> topology);

}  // namespace sotto
