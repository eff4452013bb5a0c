// The nodes of a planned run, as the simulator takes them.
#pragma once

#include <memory>
#include <vector>

#include <sotto/base/parameter_layout.h>
#include <sotto/optim/exchange/frame_room.h>
#include <sotto/sim/timing_job.h>
#include <sotto/study/train/train_plan.h>
#include <sotto/topology/topology.h>
#include <sotto/trainers/optimizer.h>

namespace sotto::study {

struct JobNodes {
  std::shared_ptr<const Topology> topology;
  ParameterLayout layout;    ///< the tensors of the model
  std::vector<float> start;  ///< the first model of all nodes
  NodeFactory make;          ///< makes the nodes; may be called after the plan is gone
};

/// The nodes of a plan with `options` in place of its own, which share `frames` where it is not
/// null (AlgorithmSetup::frames). Throws Error.
JobNodes job_nodes(const TrainPlan& plan, const OptimizerOptions& options,
                   std::shared_ptr<FrameRoom> frames = {});

/// The job for timing only; stand-ins where they are wanted and exact.
TimingJob make_timing_job(const JobNodes& job, const OptimizerOptions& options, bool light);

}  // namespace sotto::study
