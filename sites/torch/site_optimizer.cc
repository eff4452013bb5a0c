#include <sotto/sites/torch/site_optimizer.h>

#include <utility>

#include <sotto/sites/torch/trained_node.h>

namespace sotto::torch {

struct SiteOptimizer::Run : TrainedNode<sotto::SiteOptimizer> {
  using TrainedNode::TrainedNode;
};

SiteOptimizer::SiteOptimizer(const NamedParameters& parameters, const SiteOptions& options,
                             const std::string& state, SiteListener listener)
    : run_(std::make_unique<Run>(parameters, std::move(listener), options, state)) {}

SiteOptimizer::SiteOptimizer(std::unique_ptr<::torch::optim::Optimizer> local,
                             const SiteOptions& options, const std::string& state,
                             const NamedParameters& names, SiteListener listener)
    : run_(std::make_unique<Run>(std::move(local), names, std::move(listener), options, state)) {}

SiteOptimizer::~SiteOptimizer() = default;

void SiteOptimizer::connect() { run_->connect(); }

void SiteOptimizer::zero_grad() { run_->model().zero_grad(); }

SiteStep SiteOptimizer::step(double loss) { return run_->step(loss); }

SiteStep SiteOptimizer::relay() {
  return run_->call([](sotto::SiteOptimizer& node) { return node.relay(); });
}

void SiteOptimizer::finish() { run_->finish(); }

void SiteOptimizer::leave() { run_->end(run_->node().leave()); }

std::vector<::torch::optim::OptimizerParamGroup>& SiteOptimizer::param_groups() {
  return run_->model().groups();
}

sotto::SiteOptimizer& SiteOptimizer::site() { return run_->node(); }

}  // namespace sotto::torch
