// One node's side of a distributed optimizer, as a pure state machine (sans-IO).
//
// An algorithm never sees a socket, a clock, a thread or a file. A driver passes events to it, and
// it answers with an `Exchange` to carry. The same object runs over a real network, over
// threads and in the simulator, and is deterministic in (state, event).
//
// A driver does, for each round:
//   begin_round()                    — may make an exchange (D-PSGD sends x before the gradient)
//   gradient at parameters()         — meanwhile the exchange may be under way
//   … until accepts_gradient()
//   take_gradient(g)                 — may make an exchange
//     or, where takes_parts(): gradient_part(first, g), as the parts of a gradient come; while
//     others are still computed, the exchanges of these may be under way
//   … until parameters_ready(), or idle() when it does not overlap, then the next round.
// After each of these calls the driver calls next_exchange(out) until it returns false, and posts
// each exchange. A driver that carries one exchange at a time calls it when that is done. When all
// sends of an exchange are handed over and all its frames have arrived, the driver calls
// complete(exchange), and next_exchange again. Exchanges under way at one time differ in the
// buckets of their tags (bucketed.h, all_reduce.h); an algorithm without buckets has at most one.
//
// Thread safety: one thread at a time; but while an exchange is under way and until take_gradient,
// next_exchange and complete leave parameters() untouched whenever parameters_ready() was already
// true, so that a gradient can be taken at them in parallel.
// Ownership: the parameters are the caller's; everything else is the algorithm's, allocated by the
// constructor. Nothing is allocated afterwards, except by save and
// take_warnings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/exchange.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/base/status.h>
#include <sotto/compress/accelerator.h>
#include <sotto/compress/compressor.h>
#include <sotto/kernels/ops.h>
#include <sotto/kernels/vector.h>
#include <sotto/optim/hyperparameters.h>
#include <sotto/optim/privacy/step_budget.h>
#include <sotto/optim/round_terms.h>
#include <sotto/optim/step_rule.h>
#include <sotto/optim/streaming.h>
#include <sotto/topology/node_groups.h>
#include <sotto/topology/topology.h>

namespace sotto {

struct Adversary;
class FrameRoom;

/// Everything that one node needs to take part.
struct AlgorithmSetup {
  /// The accelerator in whose memory the parameters and all other vectors lie; null: they lie with
  /// the host. For algorithms that can (AlgorithmInfo::accelerated). `ops` is then its own,
  /// `step_rule` is to be made with it, and `compressor` is one of the host's, which it adopts. It
  /// goes after all that it has made.
  std::shared_ptr<const Accelerator> accelerator = {};
  Rank rank = 0;
  int nodes = 1;
  /// x_i, updated in place; must outlive the algorithm and stay where it is.
  std::span<float> parameters;
  /// The tensors of x_i; empty: one of all parameters.
  ParameterLayout layout = {};
  /// The graph of nodes, or of groups where there are some.
  std::shared_ptr<const Topology> topology;
  /// Groups of nodes that train one model together, between which the algorithm exchanges
  /// (two_level.h); null: each node is by itself.
  std::shared_ptr<const NodeGroups> groups = {};
  std::unique_ptr<StepRule> step_rule;
  /// H: rounds from one exchange to the next, in which a node steps by itself (local_steps.h).
  Round communication_interval = 1;
  /// The step rule that an exchange applies to the movement of the H rounds; by default the
  /// movement is applied unchanged. When given, step_rule makes the local steps, also with H = 1.
  std::unique_ptr<StepRule> outer_step_rule;
  /// Cuts that exchange into fragments and delays it (streamed_steps.h); for algorithms that allow
  /// it (LocalStepsFit::fragments).
  Streaming streaming = {};
  /// Makes the outer step rule of each fragment but the first, which has outer_step_rule; given
  /// where that is, and there are several.
  StepRuleFactory further_outer_rules = {};
  /// Mix first, and let the outer step rule take the movement that comes of it
  /// (outer_after_mixing.h); for algorithms that allow it (LocalStepsFit::outer_after_mixing).
  bool outer_after_mixing = false;
  /// Take each gradient before the neighbours' part of the round before is in, so that the exchange
  /// hides behind it (delayed_gradient.h); for algorithms that allow it
  /// (AlgorithmInfo::hides_behind).
  bool delayed_gradient = false;
  /// Clip the gradient and add noise to it before the algorithm sees it (private_gradient.h), as
  /// the options of this budget say, which counts the steps; null: gradients are taken as they are.
  std::shared_ptr<StepBudget> privacy = {};
  std::unique_ptr<Compressor> compressor;
  /// Set by make_algorithm, which reads them from the algorithm's specification.
  Hyperparameters hyperparameters = {};
  /// The Byzantine nodes and their attack (optim/robust/attack.h), for tests of robust.
  std::shared_ptr<const Adversary> adversary = {};
  /// Settings that may change after construction, for frames and their receivers; null: none may.
  std::shared_ptr<RoundTerms> terms = {};
  /// Count this node's data by terms->share.
  bool weighted = false;
  std::uint64_t seed = 0;    ///< seed of all random rounding
  std::uint64_t run_id = 0;  ///< frames of other runs are refused
  /// The most pieces into which the parameters are cut, each with frames of its own (bucketed.h);
  /// for algorithms that can be cut (AlgorithmInfo::cutting).
  std::uint32_t buckets = 1;
  std::uint32_t bucket = 0;  ///< the piece that these parameters are, as frames say it
  /// The algorithm is a part of another one, which gives it directions
  /// (Algorithm::take_direction); its own step rule is not used.
  bool directed = false;
  /// Room for a bucket: a vector at least as long as the parameters, which all buckets use in turn.
  std::shared_ptr<Vector> scratch = {};
  /// Room for frames that other nodes use as well, where what carries them copies those that go out
  /// as soon as next_exchange has given them, and writes those that come in there right before it
  /// calls `complete`. Null: each node has its own.
  std::shared_ptr<FrameRoom> frames = {};
  /// Run although the compressor's contract or the graph's property is not what the theory needs.
  bool allow_contract_violation = false;
  const Ops* ops = &host_ops();
};

/// The peers of a node over a whole run, and the longest frame.
struct Peers {
  std::vector<Rank> to;    ///< sorted
  std::vector<Rank> from;  ///< sorted
  std::size_t max_frame_bytes = 0;
  /// Exchanges that a node may have under way at a time, one frame a peer in each.
  std::size_t frames_a_round = 1;

  /// How many frames of a peer this node keeps until it asks for them, and so how far a peer may be
  /// ahead: two rounds, and the frames that 32 MiB hold, of which 256 at most. Word of a frame
  /// taken reaches its sender a latency later; were that awaited, a link of long latency would
  /// carry a window in a round trip, and no more. So the window is wider than the bandwidth-delay
  /// product of the links that it is for: 1 Gbit/s over a round trip of 250 ms.
  std::size_t frames_ahead() const;
};

/// Counters that an algorithm keeps for reports, from its construction on.
struct AlgorithmCounters {
  std::uint64_t saturated = 0;   ///< elements clamped by the compressor
  std::uint64_t bad_frames = 0;  ///< frames refused
  std::uint64_t drifted = 0;     ///< replicas found unequal to their originals, and replaced
  /// Averagings between the models at which gradients were taken and those to which they were
  /// applied, over all gradients (AD-PSGD): divided by their number, the mean staleness.
  std::uint64_t staleness = 0;
  std::uint64_t most_stale = 0;  ///< largest staleness of a single gradient
  /// Neighbours' models that a robust rule gave no influence.
  std::uint64_t set_aside = 0;
  /// Frames of neighbours that step with other settings than this node (round_terms.h).
  std::uint64_t other_settings = 0;
  /// Push-sum: ω_i, the mass that the node holds now. Between rounds the nodes' sum is their
  /// number.
  std::optional<double> mass = {};

  /// Adds those of another node, or of another piece of the model; the mass stays.
  void add(const AlgorithmCounters& more);
};

class Algorithm {
 public:
  virtual ~Algorithm() = default;

  /// The name in the registry, for example "dcd".
  virtual std::string_view name() const = 0;
  /// The peers of this node over all rounds, and its longest frame.
  virtual Peers peers() const = 0;

  /// The model at which the next gradient is taken.
  virtual std::span<const float> parameters() const = 0;
  /// Rounds finished so far; the round under way has this number. A round is finished when the
  /// model has taken its step, though its exchange may still be under way (DCD, ECD).
  virtual Round round() const = 0;

  /// parameters() is the point of the next gradient.
  virtual bool parameters_ready() const = 0;
  /// take_gradient may be called: the exchanges that it builds on are complete.
  virtual bool accepts_gradient() const = 0;
  /// No exchange is under way or due: the state can be saved, or the run ended.
  virtual bool idle() const = 0;

  /// Starts a round; requires parameters_ready().
  virtual void begin_round() = 0;
  /// Takes the local gradient at parameters(). It must stay as it is until parameters_ready(), or
  /// until a fault after which the algorithm is not called any more. Fault::non_finite names node,
  /// round and element of a NaN or an infinity; the state is then unchanged, and another gradient
  /// may be given. An update that overflows is such a fault too, noticed before it is sent: the
  /// model is then as it was, but that a long one may have moved in part; the step rule has taken
  /// the gradient in, and takes no other.
  virtual Status take_gradient(std::span<const float> gradient) = 0;
  /// Takes a direction, finite, in place of a gradient. Only of algorithms that can be cut
  /// (AlgorithmInfo::cutting), made with AlgorithmSetup::directed.
  virtual Status take_direction(const Direction& d);
  /// Begins a round and takes its direction, for a caller that looks at the model after the node's
  /// own step before it is mixed (delayed_gradient.h): writes that model to `stepped`, as long as
  /// the parameters, which stays as it is until parameters_ready(). Only of algorithms that step
  /// before they mix (AlgorithmInfo::hides_behind). After a fault `stepped` may hold anything; it
  /// is not finite where the step itself overflowed.
  virtual Status step_ahead(const Direction& d, std::span<float> stepped);
  /// Whether a round's gradient may come in parts.
  virtual bool takes_parts() const { return false; }
  /// Takes the gradient of whole tensors that follow each other, from parameter `first` on; the
  /// part may go when it returns. The first part of a round requires accepts_gradient(); the round
  /// goes on when each parameter has been in one part. Parameters that have not been in one yet
  /// stay as they are, for the gradients to come; the others may have moved. Faults are those of
  /// take_gradient.
  virtual Status gradient_part(std::size_t first, std::span<const float> part);
  /// Writes the next exchange that is to be posted to `out`; false when none is due now. A fault
  /// ends the run.
  virtual Result<bool> next_exchange(Exchange& out) = 0;
  /// Takes the frames of an exchange that next_exchange gave and that is complete: they stand in
  /// its receives. A frame that is not due, that breaks a rule or does not decode is a fault that
  /// names its sender and leaves the exchange open: frames before it have been taken, and another
  /// call goes on with the one that was refused. Fault::non_finite, an overflow of this node's own,
  /// is final: the algorithm must be discarded, and parameters() may hold what overflowed.
  virtual Status complete(const Exchange& exchange) = 0;

  /// Floating-point operations that `complete` of this exchange, which is under way, will make
  /// beside decoding and mixing: what simulations count as computation.
  virtual double flops_behind(const ExchangeTag& /*tag*/) const { return 0; }

  /// The counters so far.
  virtual AlgorithmCounters counters() const = 0;
  /// Warnings for the user since the last call, a line each, without the node's name. Requires
  /// parameters_ready(), as after each round.
  virtual std::vector<std::string> take_warnings() { return {}; }

  /// The whole state but parameters(), which the caller saves. Requires idle(); or that no exchange
  /// is under way and the round's gradient has not been taken: what is saved is then the state
  /// before the round.
  virtual void save(ByteBuffer& out) const = 0;
  /// Restores what save wrote with the same setup; on a fault the algorithm must be discarded.
  virtual Status load(ByteReader& in) = 0;
};

}  // namespace sotto
