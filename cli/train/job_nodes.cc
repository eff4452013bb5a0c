#include "job_nodes.h"

#include <utility>

#include <sotto/optim/registry.h>
#include <sotto/trainers/algorithm_setup.h>

namespace sotto::cli {

JobNodes job_nodes(const TrainPlan& plan, const OptimizerOptions& options) {
  const std::shared_ptr<const Task> sample = plan.tasks->make(0);
  JobNodes job = {.topology = make_job_topology(options), .start = plan.run.start, .make = {}};
  if (job.start.empty()) {
    job.start.resize(sample->dimension());
    sample->initialize(job.start, options.seed);
  }
  job.make = [options, sample, topology = job.topology](Rank rank, std::span<float> x) {
    OptimizerOptions own = options;
    own.rank = rank;
    return make_algorithm(own.algorithm, make_algorithm_setup(own, x, sample->layout(), topology));
  };
  return job;
}

RehearsalJob rehearse(const JobNodes& job, const OptimizerOptions& options, bool light) {
  // An algorithm with local steps looks to its first exchange like the one within.
  return sotto::rehearse(
      job.make, job.topology, job.start,
      {.light = light && options.communication_interval == 1, .seed = options.seed});
}

}  // namespace sotto::cli
