// A libtorch model that is trained by all-reduce on nodes that come and go (docs/epochs.md): all
// nodes have one model, and a step outlives the loss of any of them.
//
//   sotto::torch::ElasticOptimizer optimizer(std::make_unique<torch::optim::Adam>(…), options);
//   optimizer.connect();
//   while (!optimizer.node().over()) {
//     optimizer.zero_grad();
//     … loss.backward();
//     optimizer.step(loss.item<double>());
//   }
//   optimizer.finish();
//
// The step rule is sotto's, as the options say, or a torch optimizer, whose memory newcomers take
// over with the model; with local steps (ElasticOptions::communication_interval, DiLoCo) it makes
// those, and each node's memory is its own. set_schedule() changes its rates. Buffers, e.g. running
// statistics of BatchNorm, stay this node's own.
//
// Thread safety: one thread; between two calls a thread of its own answers the others.
// Ownership: it moves the model's parameters into one flat vector, which lives as long as they do.
// They may be read at any time; connect(), step(), wait() and finish() alone change them.
// Errors: wrong settings and misuse throw sotto::Error; a fault of this node (never of a peer)
// throws RunFault: Fault::deadline and Fault::stopped of waits that ended early, others for good.
// Where options.stop ends a wait nothing is thrown: the call returns, and node().over() is true.
// Inside namespace sotto::torch, write ::torch for the library.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <sotto/sites/elastic/elastic_optimizer.h>
#include <sotto/trainers/torch/distributed_optimizer.h>

namespace sotto::torch {

class ElasticOptimizer {
 public:
  /// A node with these options. `model` as it is counts where this node begins the run; otherwise
  /// connect() puts the run's in its place. Frozen parameters are left out. `listener` is told of
  /// events, on this thread and the node's own. Throws Error for an option that is refused, and for
  /// parameters that are not float32, float64, half or bfloat16.
  ElasticOptimizer(const ::torch::nn::Module& model, const ElasticOptions& options,
                   SiteListener listener = {});
  /// Takes parameters with names.
  ElasticOptimizer(const NamedParameters& parameters, const ElasticOptions& options,
                   SiteListener listener = {});
  /// Steps by `local`, a new torch optimizer that is not to be stepped by itself any more, in place
  /// of options.step_rule: its class and the options of its groups as they are now, which must be
  /// the same at all nodes. Throws Error for one that evaluates the loss several times a step.
  ElasticOptimizer(std::unique_ptr<::torch::optim::Optimizer> local, const ElasticOptions& options,
                   const NamedParameters& names = NamedParameters(), SiteListener listener = {});
  /// Leaves at once, as a process that dies does.
  ~ElasticOptimizer();
  ElasticOptimizer(const ElasticOptimizer&) = delete;
  ElasticOptimizer& operator=(const ElasticOptimizer&) = delete;

  /// Finds the others, and waits until this node takes part: the parameters are the run's then, if
  /// node().over() is not true.
  void connect();
  /// Takes the parameters' gradients away. Throws Error where some of them have been sent.
  void zero_grad();
  /// Says that the next backward pass gives the whole gradient of the step: as soon as the layers
  /// of a chunk (docs/epochs.md) have theirs, it is sent, while the pass goes on. Results are the
  /// same. Call connect() first, as a pass in which the parameters become the run's is left out.
  /// Gradients stay as they are until step(), which else throws Error: no clipping, no scaler. A
  /// batch cannot be skipped once some of its gradient has been sent: after a RunFault of one that
  /// is not finite, step() may be called again with another gradient in the place of the rest.
  /// False, and nothing is done, with local steps, which send no gradient.
  bool start_in_backward();
  /// A step by the mean of all nodes' gradients; one that is missing counts as 0. `loss` is that of
  /// the same batch. After a RunFault of a gradient that is not finite nothing has changed. Where
  /// options.stop has ended the wait, finish() may still make the step.
  ElasticStep step(double loss = std::numeric_limits<double>::quiet_NaN());
  /// Goes on with the wait of a step() that ended early.
  ElasticStep wait();
  /// Leaves in good order; no step may follow.
  void finish();

  /// Sets rates and other options of the torch optimizer's groups for the step of this number, from
  /// 0.
  using Schedule =
      std::function<void(Round step, std::vector<::torch::optim::OptimizerParamGroup>& groups)>;
  /// Calls `schedule` before each step of the torch optimizer. It sets all that ever changes, and
  /// depends on the number alone: newcomers make steps that the others have made, and where two
  /// schedules differ all nodes end. It is called in calls of this class, and by the node's own
  /// thread, one at a time. Before connect(); throws Error after that, and without a torch
  /// optimizer.
  ///
  ///     optimizer.set_schedule([](sotto::Round step, auto& groups) {
  ///       groups[0].options().set_lr(step < 1000 ? 1e-3 : 1e-4);
  ///     });
  void set_schedule(Schedule schedule);
  /// The node itself: rounds, report, cancel().
  sotto::ElasticOptimizer& node();

 private:
  struct Run;
  std::unique_ptr<Run> run_;
};

}  // namespace sotto::torch
