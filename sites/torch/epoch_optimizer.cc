#include <sotto/sites/torch/epoch_optimizer.h>

#include <utility>

#include <sotto/sites/torch/trained_model.h>

namespace sotto::torch {

struct EpochOptimizer::Run {
  Run(const NamedParameters& named, const EpochOptions& options, SiteListener listener)
      : model(named),
        node(options, model.flat().values(), model.flat().layout(), std::move(listener)) {}

  Run(std::unique_ptr<::torch::optim::Optimizer> local, const NamedParameters& names,
      const EpochOptions& options, SiteListener listener)
      : model(std::move(local), names),
        node(model.with_steps(options), model.flat().values(), model.flat().layout(),
             std::move(listener)) {}

  /// The parameters have the run's values, whatever the node says of the call.
  EpochStep shown(const Result<EpochStep>& step) {
    model.flat().publish();
    require_ok(step.status());
    return *step;
  }

  TrainedModel model;
  sotto::EpochOptimizer node;
};

EpochOptimizer::EpochOptimizer(const ::torch::nn::Module& model, const EpochOptions& options,
                               SiteListener listener)
    : EpochOptimizer(model.named_parameters(), options, std::move(listener)) {}

EpochOptimizer::EpochOptimizer(const NamedParameters& parameters, const EpochOptions& options,
                               SiteListener listener)
    : run_(std::make_unique<Run>(parameters, options, std::move(listener))) {}

EpochOptimizer::EpochOptimizer(std::unique_ptr<::torch::optim::Optimizer> local,
                               const EpochOptions& options, const NamedParameters& names,
                               SiteListener listener)
    : run_(std::make_unique<Run>(std::move(local), names, options, std::move(listener))) {}

EpochOptimizer::~EpochOptimizer() = default;

void EpochOptimizer::connect() {
  run_->model.flat().require_unchanged();
  const Status status = run_->node.connect();
  run_->model.flat().publish();
  require_ok(status);
}

void EpochOptimizer::zero_grad() { run_->model.zero_grad(); }

EpochStep EpochOptimizer::step(double loss) {
  return run_->shown(run_->node.step(run_->model.gather_gradients(), loss));
}

EpochStep EpochOptimizer::wait() {
  run_->model.flat().require_unchanged();
  return run_->shown(run_->node.wait());
}

void EpochOptimizer::finish() {
  const Status status = run_->node.finish();
  run_->model.flat().publish();
  require_ok(status);
}

std::vector<::torch::optim::OptimizerParamGroup>& EpochOptimizer::param_groups() {
  return run_->model.groups();
}

sotto::EpochOptimizer& EpochOptimizer::node() { return run_->node; }

}  // namespace sotto::torch
