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
  bool time_varying = false;      ///< takes graphs that change between rounds
  bool replicas = false;    ///< takes such graphs too, and hands whole vectors over along new edges
  bool keeps_mean = false;  ///< neighbours mix so that their mean model moves by d̄ alone
  bool movable = false;     ///< takes any model between rounds: no node has a copy of it
  bool streams = false;     ///< the exchange may be that of a fragment (streamed_steps.h)
  bool has_memory = false;  ///< the compression errors stand for a momentum of the outer rule
  bool overlaps = false;    ///< the exchange hides behind a gradient exactly
  bool delayable = false;   ///< the exchange hides so with gradients that do not wait for it
  bool separable = false;   ///< parameters can be cut into buckets (bucketed.h)
  bool cuts_itself = false;          ///< cuts itself into buckets, and is not cut from outside
  bool bounded_by_spectrum = false;  ///< the theory bounds the compressor's α by the graph (DCD)
  std::string_view step_rule = {};   ///< the step rule that it takes; empty: any
  bool cuts_rule = false;        ///< the step rule sees a piece of the model: it goes by elements
  bool encodes_chunks = false;   ///< messages are chunks of the model, not tensors
  double learning_rate = 0;      ///< usual learning rate; 0: that of the step rule
  std::string_view family = {};  ///< family of the compressors that it takes; empty: any
  bool accelerated = false;      ///< the vectors may lie where the host cannot reach them
  bool robust = false;           ///< meant for neighbours that may be Byzantine
  /// The first exchange after which it may freeze Adam's variance by itself, by β₂; null: it
  /// freezes none unless told when.
  Round (*earliest_freeze)(float beta2) = nullptr;
  /// The largest job: beyond, the phases of a round are more than a frame can number.
  int most_nodes = std::numeric_limits<int>::max();
  /// The treatment of nodes with step settings that have come to differ.
  SettingsAgreement agreement = SettingsAgreement::expected;
  /// The exchanges of a round, if they are so regular that a stand-in can play them.
  ExchangePattern pattern = ExchangePattern::irregular;
  /// Bytes that a node sends in a round, headers left out: n nodes, d parameters, |C| an encoding.
  std::string_view bytes;
  StateMemory memory;
  std::string_view default_compressor;
  /// Specifications of the compressors with which plans try it unasked; empty: they do not. Of
  /// algorithms that are `robust` plans try it where nodes lie, else no such.
  std::span<const std::string_view> planned_compressors = {};
  std::uint16_t wire_id = 0;
  /// Constructs it from a setup that make_algorithm has approved; call make_algorithm instead.
  std::unique_ptr<Algorithm> (*build)(AlgorithmSetup setup) = nullptr;

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
/// `of_matrices`.
double state_floats(const StateMemory& memory, int nodes, int degree, bool changing_graph);
/// The formula that state_floats computes: "2 + degree".
std::string state_formula(const StateMemory& memory);

}  // namespace sotto
