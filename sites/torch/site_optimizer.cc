#include <sotto/sites/torch/site_optimizer.h>

#include <utility>
#include <vector>

#include <torch/types.h>

#include <sotto/trainers/torch/flat_parameters.h>

namespace sotto::torch {
namespace {

std::vector<::torch::Tensor> tensors_of(const NamedParameters& named) {
  std::vector<::torch::Tensor> tensors;
  tensors.reserve(named.size());
  for (const auto& one : named) {
    tensors.push_back(one.value());
  }
  return tensors;
}

void require_ok(const Status& status) {
  if (!status.ok()) {
    throw RunFault(status);
  }
}

}  // namespace

struct SiteOptimizer::Run {
  Run(const NamedParameters& named, const SiteOptions& options, const std::string& state,
      SiteListener listener)
      : flat(tensors_of(named), named),
        site(options, state, flat.values(), flat.layout(), std::move(listener)) {}

  /// The parameters have the site's values, whatever the site says of the call.
  SiteStep shown(const Result<SiteStep>& step) const {
    flat.publish();
    require_ok(step.status());
    return *step;
  }

  FlatParameters flat;
  sotto::SiteOptimizer site;
};

SiteOptimizer::SiteOptimizer(const ::torch::nn::Module& model, const SiteSettings& settings,
                             SiteListener listener)
    : SiteOptimizer(model.named_parameters(), options_of(settings), settings.state,
                    std::move(listener)) {}

SiteOptimizer::SiteOptimizer(const NamedParameters& parameters, const SiteOptions& options,
                             const std::string& state, SiteListener listener)
    : run_(std::make_unique<Run>(parameters, options, state, std::move(listener))) {}

SiteOptimizer::~SiteOptimizer() = default;

void SiteOptimizer::connect() {
  run_->flat.require_unchanged();
  const Status status = run_->site.connect();
  run_->flat.publish();
  require_ok(status);
}

void SiteOptimizer::zero_grad() {
  for (const ::torch::Tensor& parameter : run_->flat.parameters()) {
    parameter.mutable_grad() = ::torch::Tensor();
  }
}

SiteStep SiteOptimizer::step(double loss) {
  run_->flat.require_unchanged();
  run_->flat.gather_gradients();
  return run_->shown(run_->site.step(run_->flat.gradient(), loss));
}

SiteStep SiteOptimizer::relay() {
  run_->flat.require_unchanged();
  return run_->shown(run_->site.relay());
}

void SiteOptimizer::finish() {
  const Status status = run_->site.finish();
  run_->flat.publish();
  require_ok(status);
}

sotto::SiteOptimizer& SiteOptimizer::site() { return run_->site; }

}  // namespace sotto::torch
