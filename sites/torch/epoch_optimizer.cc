#include <sotto/sites/torch/epoch_optimizer.h>

#include <utility>

#include <sotto/sites/torch/trained_node.h>

namespace sotto::torch {

struct EpochOptimizer::Run : TrainedNode<sotto::EpochOptimizer> {
  using TrainedNode::TrainedNode;
};

EpochOptimizer::EpochOptimizer(const ::torch::nn::Module& model, const EpochOptions& options,
                               SiteListener listener)
    : EpochOptimizer(model.named_parameters(), options, std::move(listener)) {}

EpochOptimizer::EpochOptimizer(const NamedParameters& parameters, const EpochOptions& options,
                               SiteListener listener)
    : run_(std::make_unique<Run>(parameters, std::move(listener), options)) {}

EpochOptimizer::EpochOptimizer(std::unique_ptr<::torch::optim::Optimizer> local,
                               const EpochOptions& options, const NamedParameters& names,
                               SiteListener listener)
    : run_(std::make_unique<Run>(std::move(local), names, std::move(listener), options)) {}

EpochOptimizer::~EpochOptimizer() = default;

void EpochOptimizer::connect() { run_->connect(); }

void EpochOptimizer::zero_grad() { run_->model().zero_grad(); }

EpochStep EpochOptimizer::step(double loss) { return run_->step(loss); }

EpochStep EpochOptimizer::wait() {
  return run_->call([](sotto::EpochOptimizer& node) { return node.wait(); });
}

void EpochOptimizer::finish() { run_->finish(); }

std::vector<::torch::optim::OptimizerParamGroup>& EpochOptimizer::param_groups() {
  return run_->model().groups();
}

sotto::EpochOptimizer& EpochOptimizer::node() { return run_->node(); }

}  // namespace sotto::torch
