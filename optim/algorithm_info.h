// Facts about an algorithm, known before one is made. Each algorithm states its facts at the end of
// its source file, and registry.h lists them. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <sotto/compress/compressor.h>
#include <sotto/optim/algorithm.h>
#include <sotto/optim/algorithm_id.h>
#include <sotto/optim/hyperparameters.h>

namespace sotto {

/// The property of the mixing matrix that an algorithm needs.
enum class GraphNeed {
  any,                ///< does not use the graph (all-reduce)
  doubly_stochastic,  ///< rows and columns sum to 1
  symmetric,          ///< symmetric and doubly stochastic
  column_stochastic,  ///< columns sum to 1 (push-sum)
};

/// The changes of the graph between rounds that an algorithm takes.
enum class GraphChange {
  none,           ///< the graph stays
  any,            ///< any graph may follow
  with_handover,  ///< any graph may follow; whole vectors go over along new edges
};

/// How the model can be cut into pieces that are exchanged one after another (bucketed.h).
enum class Cutting {
  none,       ///< the model is exchanged as a whole
  separable,  ///< each piece is exchanged by an algorithm of its own
  by_itself,  ///< the algorithm cuts the model, and is not cut from outside
};

/// The gradient behind which an exchange hides.
enum class HidesBehind {
  nothing,
  next_gradient,     ///< the next one, exactly as if it did not hide
  delayed_gradient,  ///< one that does not wait for the exchange (delayed_gradient.h)
};

/// What local steps and their outer rule may do with an algorithm.
struct LocalStepsFit {
  bool fragments = false;  ///< the exchange may be that of a fragment (streamed_steps.h)
  /// The outer rule may step after the mixing: the algorithm takes any model between rounds, as no
  /// node has a copy of it.
  bool outer_after_mixing = false;
  /// The compression errors stand for a momentum of the outer rule.
  bool errors_as_momentum = false;
};

/// The step rules that an algorithm takes.
struct StepRulesFit {
  std::string_view only = {};  ///< the one rule that it takes; empty: any
  bool by_element = false;     ///< rules that go by elements, as they see a piece of the model
  /// Rules that follow how mixing moves the model (quasi_global.h): neighbours mix so that their
  /// mean model moves by d̄ alone.
  bool may_follow_model = false;
};

/// The compressors that an algorithm takes, besides their contract.
struct CompressorsFit {
  std::string_view family = {};      ///< family that they are of; empty: any
  bool of_chunks = false;            ///< they encode chunks of the model, not tensors
  bool bounded_by_spectrum = false;  ///< the theory bounds their α by the graph (DCD)
};

/// Floats of state per parameter that a node keeps, besides the model, those of the step rule and
/// the frames. The header of the algorithm says the number, and a test measures it.
struct StateMemory {
  double floats = 0;
  double per_neighbour = 0;           ///< floats times the degree of a round
  double per_changing_neighbour = 0;  ///< floats times the degree, on graphs that change
  double per_nth = 0;                 ///< floats divided by the number of nodes
  std::string_view of_matrices = {};  ///< additional floats that depend on the matrices' shapes
};

/// The senders and receivers of a round's exchanges, with frames of one size.
enum class ExchangePattern {
  irregular,   ///< several exchanges of a kind a round, or frames of several sizes
  neighbours,  ///< one exchange with the graph's neighbours
  ring,        ///< 2 (n − 1) exchanges a bucket, each to the next rank and from the one before
  pairings,    ///< one exchange with each partner of the round (AD-PSGD)
};

/// The scenarios that plans try an algorithm in.
enum class PlannedWhere {
  anywhere,
  unlike_data,   ///< the nodes' data differ
  uneven_nodes,  ///< some nodes compute faster than others
};

/// What plans make of an algorithm (docs/planning.md).
struct PlanFit {
  /// Specifications of the compressors with which they try it unasked; empty: they do not. Of
  /// algorithms that are `robust` plans try it where nodes lie, else no such.
  std::span<const std::string_view> compressors = {};
  /// Hyperparameters with which they do, as behind its name, "momentum=0.1"; empty: its defaults.
  std::string_view hyperparameters = {};
  PlannedWhere where = PlannedWhere::anywhere;
  /// Multiply-adds of a round for each element of the model's matrices and each column of
  /// `lowrank:K`, which no codec is timed for.
  double products = 0;
  double products_per_neighbour = 0;  ///< such multiply-adds times the degree
  /// Why they do not try it, in words; given where `compressors` are not.
  std::string_view why_not = {};
};

/// One algorithm, as `sotto list` shows it.
struct AlgorithmInfo {
  std::string_view name;     ///< "dcd", the first word of its specification
  std::string_view title;    ///< the full title, "DCD-PSGD, difference compression"
  std::string_view paper;    ///< authors, year, arXiv number
  std::string_view rule;     ///< the update in one line
  std::string_view summary;  ///< when to use it
  /// Hyperparameters that the specification may set.
  std::span<const Hyperparameter> hyperparameters = {};
  ContractKind contract = ContractKind::any;
  GraphNeed graph = GraphNeed::any;
  double eigenvalues_above = -1;  ///< lower bound of λ_n of a symmetric W (D²: −⅓)
  GraphChange graph_change = GraphChange::none;
  Cutting cutting = Cutting::none;
  HidesBehind hides_behind = HidesBehind::nothing;
  LocalStepsFit local_steps = {};
  StepRulesFit step_rules = {};
  double learning_rate = 0;  ///< usual learning rate; 0: that of the step rule
  CompressorsFit compressors = {};
  bool accelerated = false;  ///< the vectors may lie where the host cannot reach them
  bool robust = false;       ///< meant for neighbours that may be Byzantine
  /// The first exchange after which it may freeze Adam's variance by itself, by β₂; null: it
  /// freezes none unless told when.
  Round (*earliest_freeze)(float beta2) = nullptr;
  /// The largest job: beyond, the phases of a round are more than a frame can number.
  int most_nodes = std::numeric_limits<int>::max();
  /// The treatment of nodes with step settings that have come to differ.
  SettingsAgreement agreement = SettingsAgreement::expected;
  /// Encodings of the whole model in one frame.
  int encodings_a_frame = 1;
  /// The exchanges of a round, if they are so regular that a stand-in can play them.
  ExchangePattern pattern = ExchangePattern::irregular;
  /// Bytes that a node sends in a round, headers left out: n nodes, d parameters, |C| an encoding.
  std::string_view bytes;
  StateMemory memory;
  std::string_view default_compressor;
  PlanFit planned = {};
  std::uint16_t wire_id = 0;
  /// Constructs it from a setup that make_algorithm has approved; call make_algorithm instead.
  std::unique_ptr<Algorithm> (*build)(AlgorithmSetup setup) = nullptr;

  /// Whether it takes graphs that change between rounds.
  bool takes_changing_graphs() const { return graph_change != GraphChange::none; }
  /// Whether parameters can be cut into buckets, from outside or by the algorithm.
  bool takes_buckets() const { return cutting != Cutting::none; }
  /// Whether exchanges may hide behind gradients that do not wait for them.
  bool takes_delayed_gradients() const { return hides_behind == HidesBehind::delayed_gradient; }
  /// Whether local steps may exchange fragments of the model.
  bool takes_fragments() const { return local_steps.fragments; }
  /// Whether local steps' outer rule may step after the mixing.
  bool takes_outer_after_mixing() const { return local_steps.outer_after_mixing; }
  /// Whether it takes step rules that follow how mixing moves the model.
  bool takes_following_rules() const { return step_rules.may_follow_model; }
  /// Whether it has the hyperparameter of this key.
  bool has(std::string_view key) const;
};

/// The usual AlgorithmInfo::build: T is made from the setup.
template <typename T>
std::unique_ptr<Algorithm> build_algorithm(AlgorithmSetup setup) {
  return std::make_unique<T>(std::move(setup));
}

/// How specifications are written: "zeroone-adam[:freeze=T_w,limit=H]".
std::string synopsis(const AlgorithmInfo& info);

/// The need in words, for messages and lists.
std::string_view graph_need_name(GraphNeed need);

/// Floats that a node with `degree` neighbours a round keeps among `nodes` nodes, without
/// `of_matrices` and what hyperparameters add.
double state_floats(const StateMemory& memory, int nodes, int degree, bool changing_graph);
/// The formula of what a node keeps, and of what hyperparameters add: "4, and 1 with momentum".
std::string state_formula(const AlgorithmInfo& info);

}  // namespace sotto
