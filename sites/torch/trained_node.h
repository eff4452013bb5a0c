// A libtorch model that a node of sotto's trains: sotto::SiteOptimizer or sotto::ElasticOptimizer,
// around the flat vector of the model's parameters. What SiteOptimizer and ElasticOptimizer of this
// folder are built of; not for users.
//
// One thread at a time. Calls throw RunFault for a fault of the node; the parameters have the
// node's values then, too. Where the options' flag `stop` has ended a call that is no error for a
// program whose loop asks over(): the call returns. They throw Error where parameters of the model
// were replaced.
#pragma once

#include <memory>
#include <utility>

#include <torch/optim/optimizer.h>

#include <sotto/sites/nodes/report/site_event.h>
#include <sotto/sites/torch/trained_model.h>
#include <sotto/trainers/torch/distributed_optimizer.h>
#include <sotto/trainers/torch/distributed_run.h>

namespace sotto::torch {

template <typename Node>
class TrainedNode {
 public:
  /// Steps are made by a rule of sotto's. `more` is what the node takes behind its options.
  template <typename Options, typename... More>
  TrainedNode(const NamedParameters& named, SiteListener listener, const Options& options,
              const More&... more)
      : model_(named),
        node_(options, more..., model_.flat().values(), model_.flat().layout(),
              std::move(listener)) {}
  /// Steps are made by `local`.
  template <typename Options, typename... More>
  TrainedNode(std::unique_ptr<::torch::optim::Optimizer> local, const NamedParameters& names,
              SiteListener listener, const Options& options, const More&... more)
      : model_(std::move(local), names),
        node_(model_.with_steps(options), more..., model_.flat().values(), model_.flat().layout(),
              std::move(listener)) {}

  TrainedModel& model() { return model_; }
  Node& node() { return node_; }

  void connect() {
    model_.flat().require_unchanged();
    show(node_.connect());
  }
  /// A step by the parameters' gradients.
  auto step(double loss) { return shown(node_.step(model_.gather_gradients(), loss)); }
  void finish() { end(node_.finish()); }
  /// What a last call of the node has come to.
  void end(const Status& status) {
    model_.flat().publish();
    require_ok(status);
  }
  /// What another call of the node comes to, as `call(node)` makes it.
  template <typename Call>
  auto call(const Call& call) {
    model_.flat().require_unchanged();
    return shown(call(node_));
  }

 private:
  /// The parameters of the model have the node's values, whatever it says of the call.
  void show(const Status& status) {
    model_.flat().publish();
    if (status.fault() != Fault::stopped || !node_.over()) {
      require_ok(status);
    }
  }
  template <typename Step>
  Step shown(const Result<Step>& step) {
    show(step.status());
    return step.ok() ? *step : Step{.round = node_.round()};
  }

  TrainedModel model_;
  Node node_;
};

}  // namespace sotto::torch
