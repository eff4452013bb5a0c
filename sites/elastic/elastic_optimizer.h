// The optimizer of a program that is one node of an all-reduce whose nodes come and go
// (docs/epochs.md): all nodes have one model, and each step is committed at all of them.
//
//   sotto::ElasticOptimizer node(options, parameters, layout);
//   node.connect();
//   while (!node.over()) {  compute loss and gradient at `parameters`;  node.step(gradient, loss);
//   } node.finish();
//
// A step never fails because of a peer: those that live begin another epoch, and the step is made
// again of the same gradients. Where too few are there it waits, until options.wait_limit, cancel()
// or options.stop.
//
// With options.communication_interval = H a node makes H steps of its own for one of the run, as in
// DiLoCo: step() then talks to nobody but in each H-th call, and gradients are at x_i, this node's
// own model (optim/wrappers/local_steps.h).
//
// The parameters change in connect(), step(), wait() and finish() alone, and in the first part of a
// gradient where this node does not take part yet. EpochMember and its clock belong to one thread
// at a time: to the caller while it waits in a call, and between calls to a thread of the
// optimizer's own, which answers the others.
//
// Thread safety: one thread at a time; report() and cancel() may be called by others meanwhile. The
// listener is called by the caller's thread and by the optimizer's own, one at a time, and must not
// call the optimizer back but for report(). What it throws ends the node.
// Ownership: parameters, and what options point to, are the caller's, must outlive the optimizer
// and stay where they are. Memory: that of EpochMember, and of EpochLocalSteps.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <span>

#include <sotto/base/ids.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/base/status.h>
#include <sotto/sites/elastic/elastic_options.h>
#include <sotto/sites/nodes/report/site_result.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto {

/// What a step has come to.
struct ElasticStep {
  Round round = 0;  ///< steps of the run that the parameters have had; a schedule follows it
  /// The gradient, or a part of it, is in no mean: it came after `grace`, or this node was put out.
  /// With local steps the same holds for the movement since the run's step before.
  bool left_out = false;
  /// A step of this node's own, after which the run's is to come.
  bool local = false;
  auto operator<=>(const ElasticStep&) const = default;
};

class ElasticOptimizer {
 public:
  /// `parameters` are the initial model: that of the node that begins the run counts, and others
  /// take over the run's. `layout` names its tensors; empty: one tensor of all. Connects to nobody
  /// yet. Throws Error for an option that is refused, and where another process holds the folder.
  ElasticOptimizer(const ElasticOptions& options, std::span<float> parameters,
                   const ParameterLayout& layout = {}, SiteListener listener = {});
  /// Leaves at once, as a process that dies does.
  ~ElasticOptimizer();
  ElasticOptimizer(const ElasticOptimizer&) = delete;
  ElasticOptimizer& operator=(const ElasticOptimizer&) = delete;

  // A fault is of this node alone, never of a peer. Fault::deadline: options.wait_limit is over.
  // Fault::stopped: options.stop, or cancel(). After these two a further call goes on. Other faults
  // are final, and later calls return them again: the sockets failed, the run refused this node, or
  // it has another mean than the others (Fault::unexpected).

  /// Finds the others, and waits until this node takes part: the parameters are the run's then. The
  /// first step does it when the caller did not.
  Status connect();
  /// A step by the gradient at the parameters, of as many elements; returns when the mean of all is
  /// in the parameters, or the gradient is left out. `loss` at the same parameters is for reports.
  /// Fault::non_finite for a gradient that is not finite, which changes nothing. Throws Error for a
  /// gradient of another length, and while one is pending after a wait that ended early: wait()
  /// goes on with it. A local step waits for nobody.
  Result<ElasticStep> step(std::span<const float> gradient,
                           double loss = std::numeric_limits<double>::quiet_NaN());
  /// Whether gradient_part may be used: without local steps, which send no gradient.
  bool takes_parts() const;
  /// The gradient of parameters from `first` on, as soon as a backward pass has it: chunks that are
  /// complete go to the members that own them, while the caller computes the rest. Each parameter
  /// is in one part; step_by_parts() follows. Until then all parameters stay as they are, also
  /// those whose part is given, and what is given counts where members come and go meanwhile. The
  /// first part waits as connect() does where this node does not take part yet; if the parameters
  /// moved then nothing is sent, and the step is `left_out`. With `grace`, each chunk has to come
  /// within it once more than half of all members have sent theirs. Faults are as above.
  /// Fault::non_finite for a part that is not finite: nothing of it is sent, and it may be given
  /// again. Throws Error for a part that is out of range or overlaps an earlier one, with local
  /// steps, and while a gradient is pending.
  Status gradient_part(std::size_t first, std::span<const float> part);
  /// A step by the gradient whose parts were given; else as step(), which throws Error between a
  /// part and this call. Throws Error, and changes nothing, when some parts are missing.
  Result<ElasticStep> step_by_parts(double loss = std::numeric_limits<double>::quiet_NaN());
  /// Goes on with the wait of a step() that ended early. Throws Error where none did.
  Result<ElasticStep> wait();
  /// Ends the present wait, or else the next one, with Fault::stopped. Any thread may call it.
  void cancel();
  /// Notes how good the model is, for the report, the observer and the log.
  void evaluated(const Evaluation& quality);
  /// Leaves in good order: the others go on without this node, and have what it alone may know. A
  /// step that was pending may still be made; local steps that have not come to one are given up,
  /// and the parameters are the run's.
  /// Takes RosterOptions::leave_patience at most, and ends at once by cancel(), or when
  /// options.stop comes while it waits. No step may follow: Error is thrown.
  Status finish();

  /// Whether options.rounds steps are over, or it is to stop.
  bool over() const;
  /// Steps of the run that the parameters have had.
  Round round() const;
  /// The number of the next gradient in the run, from 0: round() times the communication interval,
  /// and the local steps since. Batches follow it.
  Round next_step() const;
  /// How the node stands. Any thread may ask.
  SiteReport report() const;
  /// What this process has come to so far, or in all.
  SiteResult result() const;

 private:
  class Run;
  std::unique_ptr<Run> run_;
};

}  // namespace sotto
