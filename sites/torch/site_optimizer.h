// A libtorch model that is trained with those of sites that come and go (docs/sites.md).
//
//   const sotto::SiteSettings settings = sotto::study::read_site_file("bank/site.toml");
//   sotto::torch::SiteOptimizer optimizer(model->named_parameters(), options_of(settings),
//                                         state_of(settings));
//   while (!optimizer.site().over()) {
//     optimizer.zero_grad();
//     … loss.backward();
//     optimizer.step(loss.item<double>());
//   }
//   optimizer.finish();
//
// sotto::SiteOutputs shows operators what the settings' outputs name (docs/own_models.md). The step
// rule is sotto's, as the options say, or a torch optimizer. Buffers, e.g. running statistics of
// BatchNorm, stay this site's own.
//
// Thread safety: one thread; between two calls a thread of its own serves the peers.
// Ownership: it moves the model's parameters into one flat vector, which lives as long as they do.
// They may be read at any time; connect(), step() and relay() alone change them.
// Errors: wrong settings and misuse throw sotto::Error; a fault of this site (never of a peer)
// throws RunFault. Where options.stop ends a wait nothing is thrown: the call returns, and
// site().over() is true.
// Inside namespace sotto::torch, write ::torch for the library.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <torch/optim/optimizer.h>

#include <sotto/sites/process/site_optimizer.h>
#include <sotto/trainers/torch/distributed_optimizer.h>

namespace sotto::torch {

class SiteOptimizer {
 public:
  /// A site with these options whose initial model is the parameters as they are, equal at all
  /// sites, and the folder of its state. Frozen parameters are left out. `listener` is told of
  /// events, on this thread and the site's own. Throws Error for an option that is refused, and for
  /// parameters that are not float32, float64, half or bfloat16.
  SiteOptimizer(const NamedParameters& parameters, const SiteOptions& options,
                const std::string& state, SiteListener listener = {});
  /// Steps by `local`, a new torch optimizer that is not to be stepped by itself any more, in place
  /// of options.step_rule: its class and the options of its groups as they are now, which must be
  /// the same at all sites. What it remembers is part of the site's state. Throws Error for one
  /// that evaluates the loss several times a step.
  SiteOptimizer(std::unique_ptr<::torch::optim::Optimizer> local, const SiteOptions& options,
                const std::string& state, const NamedParameters& names = NamedParameters(),
                SiteListener listener = {});
  /// Leaves at once; what has been told to others is in the folder.
  ~SiteOptimizer();
  SiteOptimizer(const SiteOptimizer&) = delete;
  SiteOptimizer& operator=(const SiteOptimizer&) = delete;

  /// Begins, at the folder's model, a neighbour's, or the initial one (sotto::SiteOptimizer). The
  /// first step does it when the caller did not, and may then be dropped. Told to stop before, it
  /// returns without a model of the sites'.
  void connect();
  /// Takes the parameters' gradients away.
  void zero_grad();
  /// A local step by the parameters' gradients; one that is missing counts as 0. `loss` is that of
  /// the same batch. After a RunFault of a gradient that is not finite nothing has changed.
  SiteStep step(double loss = std::numeric_limits<double>::quiet_NaN());
  /// A round without a step: takes in what comes, and passes it on.
  SiteStep relay();
  /// Saves the state; no step may follow.
  void finish();
  /// finish() for a node that ends before its run: in a run by roster another one takes over what
  /// it holds (sotto::SiteOptimizer::leave).
  void leave();

  /// The parameter groups of the torch optimizer, for schedulers of the caller's own, which all
  /// sites follow alike by site().round(); empty without one.
  std::vector<::torch::optim::OptimizerParamGroup>& param_groups();
  /// The site itself: rounds, report, evaluations.
  sotto::SiteOptimizer& site();

 private:
  struct Run;
  std::unique_ptr<Run> run_;
};

}  // namespace sotto::torch
