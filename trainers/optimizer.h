// The optimizer of a training program: keeps its flat parameters in step with those of the other
// nodes.
//
//   sotto::Optimizer optimizer({.algorithm = "dcd", .compressor = "quant:8"}, parameters);
//   for each batch:  compute the gradient at `parameters`;  optimizer.step(gradient);
//   optimizer.finish();
//
// Thread safety: one thread at a time; between two calls a thread of the optimizer's own may be
// talking to the neighbours (options.overlap).
// Ownership: the parameters are the caller's, must outlive the optimizer and stay where they are.
// All nodes start from the same values, which the first step checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/error.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/comm/session.h>
#include <sotto/optim/algorithm.h>
#include <sotto/optim/privacy/step_budget.h>
#include <sotto/trainers/optimizer_options.h>
#include <sotto/trainers/result.h>

namespace sotto {

namespace internal {
class EarlyStop;
class ModelMeetings;
class RunAgreement;
class RunOutcome;
class RunReporter;
class StepParts;
class StepSettings;
class WholeModel;
class WorkBefore;
struct Findings;
struct RunAccess;
}  // namespace internal

class PrivacyBudget;

class Optimizer {
 public:
  /// Builds this node's side without connecting. `layout` names the tensors of the parameters, for
  /// step rules and compressors that tell them apart; empty: one tensor of all. Throws Error for a
  /// wrong setting or pairing.
  Optimizer(OptimizerOptions options, std::span<float> parameters,
            const ParameterLayout& layout = {});
  /// Leaves without waiting for other nodes. It waits only to publish the reason if a gradient was
  /// refused and no other followed, or an exception ends the block. Call finish() first when the
  /// run went well.
  ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Faults name the node, and the peer at fault. Unless said otherwise the run has then ended for
  // this node: later calls return the fault again. All nodes that can still be reached end with the
  // first one's fault, in place of the loss of their neighbours.

  /// Meets the other nodes, compares settings and initial parameters with node 0's, and connects to
  /// the neighbours. When one differs all nodes say so at once. The first step does it when the
  /// caller did not.
  Status connect();
  /// Optional: says that the gradient of the next step is about to be computed, so that algorithms
  /// which send the model itself (dpsgd) can send it meanwhile.
  Status begin_step();
  /// One round: takes the gradient at parameters() and moves them. A gradient with a NaN or an
  /// infinity gives Fault::non_finite and changes nothing; another one may then be given. A finite
  /// one with an update that overflows gives the same fault and ends the run, as step rules have no
  /// way back; a long model may have moved in part. One that the privacy budget does not cover
  /// gives Fault::budget and nothing leaves. Fault::ended, where all nodes have agreed to end after
  /// the rounds that are done, changes nothing either: save, mean_model and finish may follow.
  /// Throws Error when its length is not the parameters'.
  Status step(std::span<const float> gradient);
  /// Whether gradient_part may be used: with an algorithm in buckets, a step rule that goes tensor
  /// by tensor (all but lars, lamb and clipping), gradients as they are (no privacy, no local
  /// steps), and a transport on which nodes may send buckets in different orders (all but nccl).
  bool takes_parts() const;
  /// The gradient of the parameters from number `first` on, as soon as a backward pass has it: the
  /// exchanges of buckets that are complete begin. A part is any range, and one of whole tensors
  /// where the step rule needs these (muon, or a rule of the program's own). Each parameter is in
  /// one part; step() follows. From then on these parameters may move, and must not be read for
  /// other gradients; all others stay. Results and faults are those of step(gradient); a part that
  /// is refused for a NaN or an infinity may be given again. Throws Error for a part that does not
  /// fit or cuts a tensor that the step rule takes whole, and without takes_parts().
  Status gradient_part(std::size_t first, std::span<const float> part);
  /// One round, after all parts of its gradient. Throws Error when some are missing.
  Status step();
  /// Changes the base learning rate from the next step on, for a schedule of the caller's own; part
  /// of what save saves. All nodes do it after the same step. Where one does not, algorithms that
  /// keep models equal (SettingsAgreement::required) end the run with a fault that names it and
  /// both rates; with all others warnings() says so, and the models settle where the nodes'
  /// gradients, weighted by their rates, are balanced.
  void set_learning_rate(double learning_rate);
  /// The base learning rate of the next step; a step rule's schedule multiplies it.
  double learning_rate() const;
  /// To be called when the caller changes settings of its own_step_rule itself: says with which
  /// learning rate it steps from the next step on, and in a canonical text what else has changed
  /// since the nodes agreed; empty: nothing has. Nodes compare it as after set_learning_rate.
  /// Nothing of it is saved: that is the step rule's. Throws Error "lr" for a rate that is none.
  void announce_settings(double learning_rate, std::string_view others);
  /// Wants all nodes to end together: their steps give Fault::ended after a round that they agree
  /// on, as soon as all know. May be called by another thread, or by a signal's handler.
  void ask_to_end();
  /// Why all nodes end, "node 1 was told to stop"; empty before steps give Fault::ended.
  std::string end_reason() const;
  /// Reports the caller's evaluation of its model, or of mean_model's. Node 0 passes it to the
  /// observer at once, with the state of all nodes; other nodes ignore it. Call it between two
  /// steps.
  Status evaluated(double loss, double accuracy = std::numeric_limits<double>::quiet_NaN());
  /// The mean of all nodes' models, in `mean` on every node, and the consensus distance
  /// (1/n) Σ‖x_i − x̄‖². All nodes call it after the same step: where one has gone on, or finished,
  /// all are told at once (Fault::unexpected). The models go through the store, whole, and count as
  /// no traffic. Throws Error for another length than the parameters', and in the middle of a step.
  Result<double> mean_model(std::span<float> mean);
  /// Values that belong to the model and that no step moves, e.g. a layer's running statistics:
  /// mean_model and finish_with_mean give their mean behind that of the parameters, in a `mean` as
  /// long as both. They may change between steps, and must outlive this object. All nodes carry
  /// equally many, which they compare as they meet; once, before they do.
  void carry_along(std::span<const float> values);
  /// Replaces `values` by node 0's: the start of what carry_along carries. All nodes call it, in
  /// one order, with equally many values.
  Status take_from_node_0(std::span<float> values);
  /// Ends the run for a reason of the program's own: once the nodes have met, all end with `cause`.
  /// Returns `cause` with this node's name, or the fault that ended the run before; OK if `cause`
  /// is OK, and after finish().
  Status give_up(const Status& cause);
  /// Waits until this node's exchanges are complete, e.g. before save or exact counts.
  Status drain();
  /// Drains, and waits until all nodes have come this far; options.join says what happens where
  /// others take further steps. No step may follow.
  Status finish();
  /// finish(), with the mean of all nodes' models at the end, in `mean` on every node, and its
  /// consensus distance: where nodes end with different amounts of data (options.join), mean_model
  /// would come too early. Throws Error for another length than the parameters'.
  Result<double> finish_with_mean(std::span<float> mean);

  /// The model: where the next gradient is to be taken, and the result in the end. With an
  /// accelerator in its memory.
  std::span<const float> parameters() const { return algorithm_->parameters(); }
  /// The number of rounds that are done.
  Round round() const { return round_; }

  /// State for a checkpoint: parameters, algorithm, traffic, times. Requires that drain() or
  /// connect() was the last call. Of a step that was only begun nothing is saved.
  void save(ByteBuffer& out) const;
  /// Takes back what save wrote under the same settings; before the first step, else Error is
  /// thrown. All nodes take what they saved after the same round; connect() compares it where load
  /// came first. On a fault the optimizer must be discarded.
  Status load(ByteReader& in);

  /// The settings as used, all defaults filled in.
  const OptimizerOptions& options() const { return options_; }
  /// The settings that nodes and checkpoints must agree on, as text.
  std::string agreement() const;
  /// Warnings: settings that are admissible but outside the theory, and events of the run; the
  /// latest is last.
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// How this node stands, as an observer is told: traffic by peer, times, the algorithm's
  /// counters, what compression leaves out, privacy. Exact after drain(). Seconds in training and
  /// in gradients are 0 without an observer; `compression` needs options.metered or one.
  NodeStanding standing() const;
  /// The budget spent; unset without options.privacy.
  std::optional<PrivacySpent> privacy() const;
  /// The store in which the nodes of this run, and no others, meet.
  Store& store() { return *session_; }

 private:
  friend struct internal::RunAccess;

  // Rounds (optimizer.cc):

  /// Starts a round, unless one is started.
  Status start_round();
  /// Counts the round, if it went well.
  Status end_step(const Status& status);
  /// Whether `status` leaves the round open for another gradient; keeps it then.
  bool keep_open(const Status& status);
  /// Makes frames say what this node steps with.
  void stamp_settings();
  /// Adds warnings for neighbours that step with other settings, and those of the algorithm, and
  /// tells the observer.
  void note_warnings();

  // What the transport has to know (optimizer_connect.cc):

  TransportOptions transport_options() const;

  // The rest of finish(), once no node takes further steps (optimizer_meetings.cc):

  Status end_together();

  // What the observer is told (optimizer_report.cc):

  /// Tells it that the run begins, before its first round.
  Status begin_report();
  /// Tells it how the nodes stand, and what the caller has found.
  Status report(internal::Findings found);

  OptimizerOptions options_;
  /// Shared with the requests that end waits, and so with the store, which may outlive this object.
  std::shared_ptr<internal::EarlyStop> early_stop_;
  ParameterLayout layout_;
  std::shared_ptr<const Topology> topology_;
  std::unique_ptr<internal::WholeModel> model_;
  std::unique_ptr<internal::StepSettings> step_settings_;
  std::vector<std::string> warnings_;
  std::unique_ptr<Algorithm> algorithm_;
  std::unique_ptr<PrivacyBudget> budget_;         ///< null without privacy
  std::unique_ptr<internal::WorkBefore> before_;  ///< traffic and times before the checkpoint
  std::shared_ptr<Session> session_;
  std::unique_ptr<internal::RunAgreement> agreement_;
  std::unique_ptr<internal::RunReporter> reporter_;
  std::unique_ptr<internal::RunOutcome> outcome_;
  std::unique_ptr<internal::ModelMeetings> meetings_;
  std::unique_ptr<internal::StepParts> parts_;  ///< parts of this round's gradient so far
  Round round_ = 0;
  bool begun_ = false;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Driver> driver_;  ///< uses the members above
};

}  // namespace sotto
