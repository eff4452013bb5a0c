// A torch optimizer with its model kept in step with those of other nodes (docs/torch.md).
//
//   torch::optim::SGD optimizer(model->parameters(), 0.1);                      // before
//   sotto::torch::DistributedOptimizer optimizer(                               // after
//       torch::optim::SGD(model->parameters(), 0.1), {.compressor = "quant:8"});
//   for each batch:  optimizer.zero_grad(); … loss.backward(); optimizer.step();
//   optimizer.finish();
//
// It is a torch::optim::Optimizer, for torch's schedulers and torch::save; param_groups() and
// state() are those of the optimizer around which it is built, by the model's parameters. What the
// torch optimizer around which it is built would do in a step, x → x', is the step of the node:
// algorithms move by d = x − x' where their papers write γ g, and those that average gradients
// (allreduce) show it the average. Alone, with `allreduce` or `dpsgd`, the model gets the bits that
// the torch optimizer gives.
//
// Thread safety: as torch's optimizers, one thread; between two calls a thread of its own may be
// talking to the neighbours.
// Ownership: it takes the torch optimizer, and moves the parameters into one flat vector, which
// lives as long as they do. They may be read at any time. Until the nodes meet, in the first
// zero_grad or step, the model may be loaded, converted, frozen or grow by a parameter group; then
// steps and load alone change it, and layers are frozen on all nodes alike.
// Errors: wrong settings and misuse throw sotto::Error; a fault of the run (a lost peer, a gradient
// that is not finite) throws RunFault, since torch's step has no room for a Status.
// Inside namespace sotto::torch, write ::torch for the library.
#pragma once

#include <concepts>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/ordered_dict.h>

#include <sotto/base/error.h>
#include <sotto/base/status.h>
#include <sotto/trainers/optimizer.h>

namespace sotto::torch {

/// The type of model->named_parameters().
using NamedParameters = ::torch::OrderedDict<std::string, ::torch::Tensor>;

/// A fault of the run, as sotto::Optimizer returns it.
class RunFault : public std::runtime_error {
 public:
  /// The fault that ended the run.
  explicit RunFault(Status status) : runtime_error(status.message()), status_(std::move(status)) {}
  const Status& status() const { return status_; }

 private:
  Status status_;
};

class DistributedOptimizer final : public ::torch::optim::Optimizer {
 public:
  /// Wraps a torch optimizer (any that steps without evaluating the loss again; not LBFGS). What it
  /// has learnt is kept, and is to be the same at all nodes. Its parameter groups, with their
  /// learning rates, become this one's; options.step_rule is not used. `names` are for what goes by
  /// tensors' names, e.g. a compressor for biases. Throws Error for a wrong setting, and for
  /// parameters that are not float32, float64, half or bfloat16.
  template <std::derived_from<::torch::optim::Optimizer> Local>
  explicit DistributedOptimizer(Local local, OptimizerOptions options = {},
                                const NamedParameters& names = NamedParameters())
      : DistributedOptimizer(std::make_unique<Local>(std::move(local)), std::move(options), names) {
  }
  /// Takes names and buffers from the model that has the optimizer's parameters (carry_buffers).
  template <std::derived_from<::torch::optim::Optimizer> Local>
  DistributedOptimizer(Local local, OptimizerOptions options, const ::torch::nn::Module& model)
      : DistributedOptimizer(std::move(local), std::move(options), model.named_parameters()) {
    carry_buffers(model.named_buffers());
  }
  /// Wraps an optimizer that is held by a pointer.
  explicit DistributedOptimizer(std::unique_ptr<::torch::optim::Optimizer> local,
                                OptimizerOptions options = {},
                                const NamedParameters& names = NamedParameters());
  /// Steps with a step rule of sotto's, options.step_rule, which some algorithms are built on
  /// (onebit-adam on adam). Its learning rate is that of the one parameter group.
  DistributedOptimizer(const NamedParameters& parameters, OptimizerOptions options);
  /// Takes parameters without names.
  DistributedOptimizer(std::vector<::torch::Tensor> parameters, OptimizerOptions options);
  /// Takes the place of another one, with which nothing can be done any more. A scheduler holds on
  /// to the one that it was made for.
  DistributedOptimizer(DistributedOptimizer&& other) noexcept;
  DistributedOptimizer& operator=(DistributedOptimizer&& other) noexcept;
  /// Leaves without waiting for anybody; call finish() first when the run went well.
  ~DistributedOptimizer() override;

  /// Takes along the model's buffers, which no step moves, e.g. BatchNorm's running statistics: all
  /// nodes start from node 0's; with_mean and finish_with_mean show their mean with the
  /// parameters'; save and load hold them. Whole numbers among them, as the count of batches, are
  /// saved, and else stay this node's own. All nodes call it, once, before the first step or load.
  void carry_buffers(const NamedParameters& buffers);

  /// Zeroes the gradients, and says that the next ones are about to be computed: algorithms that
  /// send the model itself (dpsgd) do so meanwhile. The first call meets the other nodes.
  void zero_grad();
  /// Takes the gradients away (true) or fills them with 0 (false), where zero_grad() does what this
  /// libtorch does by default: fill them before 2.0, and then take them away.
  void zero_grad(bool set_to_none);
  /// Says that the next backward pass gives the whole gradient of the step: as soon as a bucket's
  /// layers have theirs, it is encoded and sent, while the pass goes on. Results are the same. The
  /// pass must read no parameter once it has its gradient, as torch's layers do not, also where
  /// they share one; and gradients and the groups' options stay as they are until step(), which
  /// else throws Error. A batch cannot be skipped once some of its gradient has been sent: after a
  /// NaN in the rest, step() may be called again with another gradient in that place. False, and
  /// nothing is done, where the gradient is needed whole: on one node, where Optimizer::takes_parts
  /// says so, and around other optimizers than torch's SGD, Adam, AdamW, RMSprop and Adagrad.
  bool start_in_backward();
  /// One round: takes the parameters' gradients and moves the parameters. A parameter without one
  /// counts as having the gradient 0; on a single node the torch optimizer skips it. After
  /// Fault::non_finite of a gradient nothing has changed, and the step may be taken again with
  /// another one; of an update that overflows it is final, and the model is as torch leaves it.
  /// With a closure, which is evaluated once, returns its loss.
  ::torch::Tensor step(LossClosure closure = nullptr) override;

  /// A round without a gradient of this node, e.g. where a scaler has found that it overflowed: the
  /// node goes along with the gradient 0, as after the end of its data (Join::zeros), whatever the
  /// parameters' gradients are. A single node's torch optimizer does nothing, as if step() had not
  /// been called. Throws Error when some of the gradient has been sent (start_in_backward).
  void skip_step();

  /// Calls `use` while the parameters hold the mean of all nodes' models, to evaluate or save it;
  /// afterwards they are as they were. All nodes call it after the same step, and before
  /// zero_grad(). Returns the consensus distance (1/n) Σ‖x_i − x̄‖².
  double with_mean(const std::function<void()>& use);
  /// Reports node 0's evaluation of its model to the observer (OptimizerOptions::observer).
  void evaluated(double loss, double accuracy = std::numeric_limits<double>::quiet_NaN());
  /// To be called by a program that ends for a reason of its own: once the nodes have met, all end
  /// with these words. One that an exception ends says so by itself, though not which.
  void give_up(const std::string& reason);
  /// Waits until all nodes have come this far; no step may follow. The model stays this node's own,
  /// which with all algorithms but the averaging ones differs a little from the others'.
  void finish();
  /// Finishes, and leaves every node with the mean of all models.
  void finish_with_mean();

  /// Saves model, state of the algorithm and of the torch optimizer with its options. The archive
  /// is one node's, and all nodes save after the same step.
  void save(::torch::serialize::OutputArchive& archive) const override;
  /// Takes back what save wrote under the same settings, before the first step; also the model's
  /// parameters. All nodes load, and meet first. Of the archive of a torch optimizer like the one
  /// that it wraps it takes what that remembers of the parameters, before the nodes meet. Throws
  /// RunFault for an archive of something else, after which it must be discarded.
  void load(::torch::serialize::InputArchive& archive) override;

  /// This node's side: rank, rounds, traffic, counters, warnings.
  const sotto::Optimizer& node() const;

 private:
  struct Run;
  DistributedOptimizer(std::unique_ptr<::torch::optim::OptimizerOptions> defaults,
                       std::vector<::torch::Tensor> parameters, OptimizerOptions options,
                       const NamedParameters& names);
  /// Lends groups and state of this object, which may be where another one was, to the node.
  void follow();
  void require_not_ended() const;
  /// Builds this node's side on the parameters, groups and state as they are now.
  void build();
  /// Says to the node what it is to know of the torch optimizer.
  void prepare_local(OptimizerOptions& options);
  /// Takes what was done to the model since this was made, before the nodes meet.
  void settle();
  /// Starts a round, unless one is started.
  void begin();
  /// Hands new warnings of the node to torch's handler of warnings, which prints them.
  void show_warnings();
  /// Takes what a torch optimizer alone has saved.
  void load_plain(::torch::serialize::InputArchive& archive);
  void load_buffers(::torch::serialize::InputArchive& archive);
  /// Takes node 0's buffers, before the first step.
  void start_buffers();
  /// Says to the other nodes what this one steps with, where that was changed.
  void announce_options();
  void end(bool take_mean);

  std::unique_ptr<Run> run_;
};

}  // namespace sotto::torch
