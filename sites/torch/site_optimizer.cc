#include <sotto/sites/torch/site_optimizer.h>

#include <utility>
#include <vector>

#include <torch/types.h>

#include <sotto/trainers/torch/flat_parameters.h>
#include <sotto/trainers/torch/local_optimizer.h>
#include <sotto/trainers/torch/optimizer_kinds.h>

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

  Run(std::unique_ptr<::torch::optim::Optimizer> own, const NamedParameters& names,
      const SiteOptions& options, const std::string& state, SiteListener listener)
      : local(std::move(own)),
        groups(std::exchange(local->param_groups(), {})),
        states(std::exchange(local->state(), {})),
        flat(parameters_in(groups), names),
        site(with_local(options), state, flat.values(), flat.layout(), std::move(listener)) {}

  /// The options of a site whose steps `local` makes.
  SiteOptions with_local(SiteOptions options) {
    to_float32(states);
    if (takes_sparse_gradients(*local)) {
      flat.take_sparse_gradients();
    }
    const AgreedSettings settings = optimizer_settings(*local, groups);
    options.further.insert(options.further.end(), settings.begin(), settings.end());
    options.own_step_rule = [this] {
      return std::make_unique<LocalOptimizer>(*local, groups, states, flat);
    };
    return options;
  }

  /// The parameters have the site's values, whatever the site says of the call.
  SiteStep shown(const Result<SiteStep>& step) const {
    flat.publish();
    require_ok(step.status());
    return *step;
  }

  std::unique_ptr<::torch::optim::Optimizer> local;  ///< null: the step rule is sotto's
  ParameterGroups groups;                            ///< of `local`, as its states are
  ParameterStates states;
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

SiteOptimizer::SiteOptimizer(std::unique_ptr<::torch::optim::Optimizer> local,
                             const SiteSettings& settings, const NamedParameters& names,
                             SiteListener listener)
    : SiteOptimizer(std::move(local), options_of(settings), settings.state, names,
                    std::move(listener)) {}

SiteOptimizer::SiteOptimizer(std::unique_ptr<::torch::optim::Optimizer> local,
                             const SiteOptions& options, const std::string& state,
                             const NamedParameters& names, SiteListener listener) {
  require_steps(local.get());
  run_ = std::make_unique<Run>(std::move(local), names, options, state, std::move(listener));
}

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

ParameterGroups& SiteOptimizer::param_groups() { return run_->groups; }

sotto::SiteOptimizer& SiteOptimizer::site() { return run_->site; }

}  // namespace sotto::torch
