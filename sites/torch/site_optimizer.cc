#include <sotto/sites/torch/site_optimizer.h>

#include <utility>

#include <sotto/sites/torch/trained_model.h>

namespace sotto::torch {

struct SiteOptimizer::Run {
  Run(const NamedParameters& named, const SiteOptions& options, const std::string& state,
      SiteListener listener)
      : model(named),
        site(options, state, model.flat().values(), model.flat().layout(), std::move(listener)) {}

  Run(std::unique_ptr<::torch::optim::Optimizer> local, const NamedParameters& names,
      const SiteOptions& options, const std::string& state, SiteListener listener)
      : model(std::move(local), names),
        site(model.with_steps(options), state, model.flat().values(), model.flat().layout(),
             std::move(listener)) {}

  /// The parameters have the site's values, whatever the site says of the call.
  SiteStep shown(const Result<SiteStep>& step) {
    model.flat().publish();
    require_ok(step.status());
    return *step;
  }

  TrainedModel model;
  sotto::SiteOptimizer site;
};

SiteOptimizer::SiteOptimizer(const ::torch::nn::Module& model, const SiteSettings& settings,
                             SiteListener listener)
    : SiteOptimizer(model.named_parameters(), options_of(settings), settings.state,
                    std::move(listener)) {}

SiteOptimizer::SiteOptimizer(const NamedParameters& parameters, const SiteOptions& options,
                             const std::string& state, SiteListener listener)
    : run_(std::make_unique<Run>(parameters, options, state, std::move(listener))) {}

SiteOptimizer::SiteOptimizer(std::unique_ptr<::torch::optim::Optimizer> local,
                             const SiteSettings& settings, const NamedParameters& names,
                             SiteListener listener)
    : SiteOptimizer(std::move(local), options_of(settings), settings.state, names,
                    std::move(listener)) {}

SiteOptimizer::SiteOptimizer(std::unique_ptr<::torch::optim::Optimizer> local,
                             const SiteOptions& options, const std::string& state,
                             const NamedParameters& names, SiteListener listener)
    : run_(std::make_unique<Run>(std::move(local), names, options, state, std::move(listener))) {}

SiteOptimizer::~SiteOptimizer() = default;

void SiteOptimizer::connect() {
  run_->model.flat().require_unchanged();
  const Status status = run_->site.connect();
  run_->model.flat().publish();
  require_ok(status);
}

void SiteOptimizer::zero_grad() { run_->model.zero_grad(); }

SiteStep SiteOptimizer::step(double loss) {
  return run_->shown(run_->site.step(run_->model.gather_gradients(), loss));
}

SiteStep SiteOptimizer::relay() {
  run_->model.flat().require_unchanged();
  return run_->shown(run_->site.relay());
}

void SiteOptimizer::finish() {
  const Status status = run_->site.finish();
  run_->model.flat().publish();
  require_ok(status);
}

std::vector<::torch::optim::OptimizerParamGroup>& SiteOptimizer::param_groups() {
  return run_->model.groups();
}

sotto::SiteOptimizer& SiteOptimizer::site() { return run_->site; }

}  // namespace sotto::torch
