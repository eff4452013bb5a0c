#include <sotto/sites/torch/elastic_optimizer.h>

#include <optional>
#include <utility>

#include <sotto/base/error.h>
#include <sotto/sites/torch/trained_node.h>
#include <sotto/trainers/torch/early_gradient.h>

namespace sotto::torch {

struct ElasticOptimizer::Run : TrainedNode<sotto::ElasticOptimizer> {
  using TrainedNode::TrainedNode;

  bool start_in_backward() {
    if (!node().takes_parts()) {
      return false;
    }
    if (!early) {
      early.emplace(model().flat(), [this](std::size_t first, std::span<const float> part) {
        return node().gradient_part(first, part);
      });
    }
    early->start();
    return true;
  }
  ElasticStep step_in_parts(double loss) {
    try {
      early->finish();
    } catch (const RunFault& fault) {  // of a part that waited until this node takes part
      model().flat().publish();
      if (fault.status().fault() == Fault::stopped && node().over()) {
        return {.round = node().round()};
      }
      throw;
    }
    return call([loss](sotto::ElasticOptimizer& node) { return node.step_by_parts(loss); });
  }

  /// Hands gradients over in the backward pass, once that was asked for.
  std::optional<EarlyGradient> early;
  bool begun = false;
};

ElasticOptimizer::ElasticOptimizer(const ::torch::nn::Module& model, const ElasticOptions& options,
                                   SiteListener listener)
    : ElasticOptimizer(model.named_parameters(), options, std::move(listener)) {}

ElasticOptimizer::ElasticOptimizer(const NamedParameters& parameters, const ElasticOptions& options,
                                   SiteListener listener)
    : run_(std::make_unique<Run>(parameters, std::move(listener), options)) {}

ElasticOptimizer::ElasticOptimizer(std::unique_ptr<::torch::optim::Optimizer> local,
                                   const ElasticOptions& options, const NamedParameters& names,
                                   SiteListener listener)
    : run_(std::make_unique<Run>(std::move(local), names, std::move(listener), options)) {}

ElasticOptimizer::~ElasticOptimizer() = default;

void ElasticOptimizer::connect() {
  run_->begun = true;
  run_->connect();
}

void ElasticOptimizer::zero_grad() {
  if (run_->early) {
    run_->early->forget();
  }
  run_->model().zero_grad();
}

bool ElasticOptimizer::start_in_backward() {
  run_->begun = true;
  return run_->start_in_backward();
}

ElasticStep ElasticOptimizer::step(double loss) {
  run_->begun = true;
  return run_->early && run_->early->started() ? run_->step_in_parts(loss) : run_->step(loss);
}

ElasticStep ElasticOptimizer::wait() {
  return run_->call([](sotto::ElasticOptimizer& node) { return node.wait(); });
}

void ElasticOptimizer::finish() { run_->finish(); }

void ElasticOptimizer::set_schedule(Schedule schedule) {
  if (!run_->model().has_optimizer()) {
    throw Error("schedule", "the step rule is sotto's, whose own setting is `schedule`");
  }
  if (run_->begun) {
    throw Error("schedule", "the node has begun: set it before connect()");
  }
  run_->model().set_schedule(std::move(schedule));
}

sotto::ElasticOptimizer& ElasticOptimizer::node() { return run_->node(); }

}  // namespace sotto::torch
