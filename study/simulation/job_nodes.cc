#include <sotto/study/simulation/job_nodes.h>

#include <numeric>
#include <utility>

#include <sotto/optim/exchange/frame_room.h>
#include <sotto/trainers/algorithm_setup.h>
#include <sotto/trainers/placed_model.h>

namespace sotto::study {

JobNodes job_nodes(const TrainPlan& plan, const OptimizerOptions& options,
                   std::shared_ptr<FrameRoom> frames) {
  const std::shared_ptr<const Task> sample = plan.tasks->make(0);
  JobNodes job = {.topology = make_job_topology(options),
                  .layout = sample->layout(),
                  .start = plan.run.start,
                  .make = {}};
  if (job.start.empty()) {
    job.start.resize(sample->dimension());
    sample->initialize(job.start, options.seed);
  }
  // What is around an algorithm may post its exchanges later than they are encoded.
  const bool plain = options.communication_interval == 1 && !options.outer_step_rule &&
                     !options.outer_after_mixing && !options.delayed_gradient &&
                     options.groups.empty() && !options.placed;
  if (!plain) {
    frames = nullptr;
  }
  // One thread drives all nodes of a simulation, so that they can use it in turn, as buckets do.
  const auto scratch = std::make_shared<Vector>(job.start.size(), host_ops());
  job.make = [options = resolved(options, job.start.size(), sample->layout()), sample, scratch,
              frames = std::move(frames), topology = job.topology,
              weights = plan.run.weights](Rank rank, std::span<float> x) {
    OptimizerOptions own = options;
    own.rank = rank;
    const auto terms = std::make_shared<RoundTerms>();
    if (!weights.empty()) {
      own.weight = weights[static_cast<std::size_t>(rank)];
      terms->share = share_of_weight(
          *own.weight, std::accumulate(weights.begin(), weights.end(), 0.0), own.nodes);
    }
    AlgorithmSetup setup = make_algorithm_setup(own, x, sample->layout(), topology);
    setup.terms = terms;
    setup.scratch = scratch;
    setup.frames = frames;
    return make_node_algorithm(own, std::move(setup));
  };
  return job;
}

TimingJob make_timing_job(const JobNodes& job, const OptimizerOptions& options, bool light) {
  // An algorithm with local steps looks to its first exchange like the one within, and stand-ins
  // know of no groups.
  const bool plain = options.communication_interval == 1 && options.groups.empty();
  return sotto::make_timing_job(
      job.make, job.topology, job.start,
      {.light = light && plain, .seed = options.seed, .nodes = options.nodes});
}

}  // namespace sotto::study
