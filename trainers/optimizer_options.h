// The settings of an Optimizer as its program gives them. Plain values, and pure functions;
// thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/comm/deadline.h>
#include <sotto/comm/stores.h>
#include <sotto/comm/trust/security.h>
#include <sotto/compress/accelerator.h>
#include <sotto/optim/privacy/privacy_options.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/step_rule.h>
#include <sotto/optim/streaming.h>
#include <sotto/topology/registry.h>
#include <sotto/trainers/settings/agreed_settings.h>

namespace sotto {

class Observer;
struct PlacedModel;

/// The rule for a node that is out of data, and calls finish(), before the others.
enum class Join {
  none,   ///< a fault that names the node and its rounds, at all nodes
  stop,   ///< all end with the round that the furthest has begun: step() gives Fault::ended
  zeros,  ///< within finish() it goes along with zero gradients until all nodes are out of data
};

/// "none", "stop" or "zeros".
std::string_view join_name(Join join);
/// The names that parse_join takes.
std::vector<std::string> join_names();
/// Throws Error unless `name` is one of stop, zeros.
Join parse_join(std::string_view name);

/// What only tests of an algorithm want of a run.
struct TestOptions {
  /// robust: these nodes lie, and are not among those averaged.
  std::vector<Rank> byzantine{};
  std::string attack{};  ///< how they lie (optim/robust/attack.h): "sign-flip"
};

/// An optimizer's settings. Every field has a default that works.
struct OptimizerOptions {
  // What is computed; the same on every node.
  std::string algorithm = "dcd";  ///< name and hyperparameters: "choco:eta=0.2"
  std::string compressor;         ///< specification; empty: the algorithm's default
  std::string topology = "ring";
  /// The ranks of each group of nodes that train one model together, all of one size: they take the
  /// mean of their gradients at each step, and the algorithm exchanges between groups, of which
  /// `topology` is the graph (two_level.h). Empty: each node is by itself.
  std::vector<std::vector<Rank>> groups;
  std::optional<Weighting> weighting;  ///< weights of the graph; by default those that fit it
  bool lazy = false;                   ///< mix with (I + W) / 2
  StepRuleOptions step_rule;
  /// Makes this node's step rule in place of step_rule; its name becomes that of the rule. Its
  /// settings are the caller's to compare (`job`).
  StepRuleFactory own_step_rule;
  /// H: steps from one exchange to the next, made by each node alone (local_steps.h).
  Round communication_interval = 1;
  /// The step rule that an exchange applies to the movement of the local steps; by default the
  /// movement is applied unchanged.
  std::optional<StepRuleOptions> outer_step_rule;
  /// Mix first, and let the outer step rule take the movement that comes of it, for gossip
  /// (outer_after_mixing.h).
  bool outer_after_mixing = false;
  /// Cuts the exchange of local steps into fragments, and delays it behind further steps
  /// (streamed_steps.h), for algorithms that average over all nodes.
  Streaming streaming;
  /// Take each gradient at the own step's end, before the neighbours' part of the round is in
  /// (delayed_gradient.h), so that choco, deepsqueeze and pushsum talk to them meanwhile. The
  /// parameters are without that part, after the last step too. What the neighbours sent is added
  /// to them while the next gradient is taken: between steps they must not be written.
  bool delayed_gradient = false;
  /// Number of pieces that the model is cut into so that their exchanges overlap (bucketed.h); by
  /// default what fits its length, and 1 where algorithm or compressor need it whole.
  std::optional<std::uint32_t> buckets;
  std::uint64_t seed = 0;
  bool allow_contract_violation = false;
  TestOptions test{};  ///< none of it where a model is to be trained
  /// Clip what the caller gives as a gradient, add noise to it before anything else sees it, and
  /// stop at a budget (docs/privacy.md). With PrivacyUnit::example the caller clips and samples.
  std::optional<PrivacyOptions> privacy;

  Join join = Join::none;
  /// The weight of this node's data in the mean of gradients, or of the movements of local steps,
  /// for example its number of examples (weighted_gradient.h): 1e-12 to 1e15. Set it at all nodes
  /// or at none; by default all nodes weigh equally.
  std::optional<double> weight;

  // These settings say which nodes take part, and how they meet.
  std::string transport = "zmq";
  int nodes = 0;  ///< 0: nodes, rank and rendezvous come from the launcher's variables (launcher.h)
  Rank rank = 0;
  std::shared_ptr<Store> store;  ///< store where the nodes meet; serves one run at a time
  std::string rendezvous;        ///< URL of the store (stores.h) when `store` is null
  std::string bind = "127.0.0.1";
  bool insecure = false;  ///< allow binding beyond loopback without encryption
  /// TCP connections over which this node sends to each peer, 1 to 16; more than 1 with zmq alone
  /// (TransportOptions::streams). Results do not change.
  int streams = 1;
  /// This node's keys and its list of peers (key_file.h, peers_file.h): all that the nodes say to
  /// each other is encrypted, and only listed peers are heard. Needs the transport zmq.
  std::optional<Security> security{};

  /// Talk to the neighbours while the caller computes its gradient.
  bool overlap = true;
  /// Threads of this node that share the encoding and decoding of long vectors, 1 to 256, the one
  /// that asks among them. Results do not change.
  int codec_threads = 1;
  /// How long peers may be silent before they count as failed; it must cover the slowest node's
  /// gradient. Short values find a hung peer sooner; a crashed one is found at once anyway.
  std::chrono::milliseconds timeout{60'000};
  /// Once true, as a call of ask_to_end(), e.g. a flag that a signal's handler sets. Must outlive
  /// the optimizer. Null: no flag.
  const std::atomic<bool>* stop = nullptr;
  /// Asked some twenty times a second while a call waits for other nodes, on whichever thread
  /// waits. Once it answers true, as it must from then on, the wait ends with Fault::stopped, which
  /// names the awaited nodes, and the run ends with it: for a caller that will not wait for an
  /// agreed end. `stop` ends waits, too, before the first round, when no end has to be agreed on.
  /// Empty: waits are not interrupted.
  StopRequest interrupted{};
  /// Further settings that the nodes must agree on, for example model and data; compared when they
  /// meet.
  AgreedSettings job;
  /// The observer, with the same wishes on all nodes (a Telemetry, observe/telemetry.h); null:
  /// none. Results do not depend on it. Must outlive the optimizer.
  Observer* observer = nullptr;
  /// Rounds from one report to the observer to the next, of how all nodes stand; before one, this
  /// node waits for its own exchanges to be complete. 0: it is told of phases alone.
  Round report_every = 100;
  /// Measures what compression leaves out (NodeStanding::compression), by a second virtual call for
  /// each encoding.
  bool metered = false;

  /// The accelerator in whose memory the parameters and gradients lie (cuda::make_accelerator,
  /// compress/cuda/accelerator.h); null: they lie with the host. For algorithms that can
  /// (AlgorithmInfo::accelerated), without privacy, codec_threads and metered; own_step_rule gets
  /// vectors that lie there. One serves one optimizer. Nodes with and without one may train
  /// together.
  std::shared_ptr<Accelerator> accelerator{};

  /// The tensors that lie at one node each, and the program that makes gradients
  /// (placed_model.h, where check_placed says what does not go with it); `step` then takes a
  /// gradient of zeros. The learning rate cannot be changed. Null: all nodes have all tensors.
  std::shared_ptr<const PlacedModel> placed{};
};

/// The weight of a node's model in the mean of all models, if its data have this weight: the same
/// if nodes take local steps; else 1, since the gradients have been weighted.
inline double weight_of_model(const OptimizerOptions& options, double weight_of_data) {
  const bool local_steps =
      options.communication_interval > 1 || options.outer_step_rule || options.outer_after_mixing;
  return local_steps ? weight_of_data : 1;
}
/// Takes the node's own options.weight, or 1 where there is none, as the weight of its data.
inline double weight_of_model(const OptimizerOptions& options) {
  return weight_of_model(options, options.weight.value_or(1));
}

}  // namespace sotto
