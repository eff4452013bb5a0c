#include <sotto/sites/elastic/elastic_run.h>

#include <utility>
#include <vector>

namespace sotto {
namespace {

/// Trains until the node is to end. A fault of step(), or none.
Status train(ElasticOptimizer& node, Task& task, std::span<float> parameters, Round eval_every) {
  std::vector<float> gradient(parameters.size());
  Status status = node.connect();
  Round evaluated = node.round();
  while (status.ok() && !node.over()) {
    // The batch is that of the run's step, so that a newcomer goes on where the others are.
    const double loss = task.loss_and_gradient(node.next_step(), parameters, gradient);
    const auto step = node.step(gradient, loss);
    status = step.status();
    if (step.ok() && eval_every > 0 && step->round / eval_every > evaluated / eval_every) {
      evaluated = step->round;
      node.evaluated(task.evaluate(parameters));
    }
  }
  return status.fault() == Fault::stopped ? Status() : status;
}

}  // namespace

Result<SiteResult> run_elastic(const ElasticOptions& options, Task& task,
                               std::span<float> parameters, Round eval_every,
                               const SiteListener& listener) {
  ElasticOptimizer node(options, parameters, task.layout(), listener);
  Status status = train(node, task, parameters, eval_every);
  if (status.ok()) {
    if (options.rounds > 0 && node.round() >= options.rounds) {
      node.evaluated(task.evaluate(parameters));
    }
    status = node.finish();
  }
  if (!status.ok()) {
    if (node.report().phase != SitePhase::failed && listener) {
      listener({.level = SiteEvent::Level::error,
                .kind = SiteEvent::Kind::failed,
                .text = status.message(),
                .round = node.round()});
    }
    return status;
  }
  return node.result();
}

}  // namespace sotto
