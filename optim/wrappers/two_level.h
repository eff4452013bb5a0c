// Two levels: any algorithm of the registry between groups of nodes, and the mean of gradients
// within each, for sites of several machines with fast links inside and slow ones between.
//
// Rule, for G groups of g nodes (topology/node_groups.h) whose members hold one model x, at member
// a of group k, which owns chunk a of the model (chunks.h):
//   1. sends each other member its chunk of the gradient, and takes theirs of chunk a:
//      ḡ_a = (1/g) Σ_i g_i[a], in the order of ranks
//   2. the inner algorithm, over chunk a and among the members a of all groups, takes ḡ_a for its
//      gradient: it is node k of G, on the graph of groups
//   3. sends chunk a of the new model to the other members, and takes theirs
// Where mixing goes before or after the step alike for all members, that is the inner algorithm on
// single nodes with W ⊗ (1/g) 11ᵀ. With local steps inside, a worker of DiLoCo is a
// group: its members take the mean of their gradients at each step, and groups talk every H.
//
// Assumes what the inner algorithm assumes, of the graph of groups; a step rule that takes each
//   element by itself (StepRule::by_element), since each member steps on its chunk alone; and
//   algorithms and compressors to which a chunk is as good as the whole. Nodes may be weighted
//   where each step ends with a mean over all of them. Members of a group step with one learning
//   rate.
// Memory: 2 (g − 1)/g floats a parameter for frames of the group, 2/g (ḡ_a, and a chunk that has
//   come), and 1/g of what the inner algorithm and the step rule keep.
// Bytes a round and node: 2 (g − 1)/g · 4 d within the group, and 1/g of the inner algorithm's
//   between groups: a group's bytes on the slow links are those of one node that trains for it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sotto/optim/algorithm.h>
#include <sotto/optim/exchange/chunks.h>
#include <sotto/optim/exchange/mailbox.h>
#include <sotto/optim/node_algorithm.h>
#include <sotto/topology/node_groups.h>

namespace sotto {

class TwoLevel final : public NodeAlgorithm {
 public:
  /// Use make_algorithm (registry.h). `setup` has groups and is not admitted yet; `spec` names the
  /// inner algorithm. Throws Error for what cannot be done in groups, and what make_algorithm
  /// throws for the inner algorithm; `warnings` receives those of it.
  TwoLevel(const AlgorithmInfo& info, const std::string& spec, AlgorithmSetup setup,
           std::vector<std::string>* warnings);

  Peers peers() const override;
  bool parameters_ready() const override { return !node_.in_round(); }
  bool accepts_gradient() const override { return node_.in_round() && stage_ == Stage::waits; }
  bool idle() const override { return !node_.in_round() && !mail_.open() && inner_->idle(); }

  void begin_round() override;
  Status take_gradient(std::span<const float> gradient) override;
  Result<bool> next_exchange(Exchange& out) override;
  Status complete(const Exchange& exchange) override;

  AlgorithmCounters counters() const override;
  std::vector<std::string> take_warnings() override { return inner_->take_warnings(); }
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// The algorithm between groups; its parameters() are this node's chunk.
  const Algorithm& inner() const { return *inner_; }

 private:
  /// How far a round has come.
  enum class Stage {
    waits,     ///< for the gradient
    scatters,  ///< 1. gradients are on their way
    averaged,  ///< ḡ_a is there
    mixes,     ///< 2. the inner algorithm has taken ḡ_a
    gathers,   ///< 3. models are on their way
  };
  static constexpr std::uint16_t kScatter = 0;
  static constexpr std::uint16_t kGather = 1;

  Chunk chunk(int position) const { return chunk_of(node_.dimension(), size_, position); }
  /// The position of the member behind an edge of the group.
  int position_of(std::size_t edge) const;
  void scatter(std::span<const float> gradient);
  /// Whether the inner algorithm has exchanges to end before the group's. Members may have unlike
  /// numbers of them, as in AD-PSGD: one that turned to its group between two would wait for a
  /// member that waits, through other groups, for its next.
  bool inner_is_first() const;
  /// ḡ_a from the frames of the other members.
  Status average(const Exchange& exchange);
  void gather();
  /// The other members' chunks of the model from their frames.
  Status take_chunks(const Exchange& exchange);
  /// From numbers of groups to those of nodes, and with a bucket for exchanges within groups.
  void to_nodes(Exchange& exchange) const;
  /// Tells of nodes with other settings that the inner algorithm has seen, by their own numbers.
  void hand_on_differences();
  /// A fault of the inner algorithm, which numbers groups.
  Status placed(const Status& status) const;

  const std::shared_ptr<const NodeGroups> groups_;
  const int group_;     // k
  const int position_;  // a
  const int size_;      // g
  std::unique_ptr<Compressor> exact_;
  std::vector<Edge> others_;           // members of the group
  std::vector<std::size_t> elements_;  // of their chunks
  std::vector<Parcel> parcels_;        // chunks of the gradient for them
  Mailbox mail_;
  std::vector<float> mean_;   // ḡ_a
  std::vector<float> taken_;  // a chunk from another member
  std::shared_ptr<RoundTerms> inner_terms_;
  std::unique_ptr<Algorithm> inner_;
  Exchange inner_exchange_;  // as the inner algorithm numbers peers
  std::span<const float> gradient_;
  Stage stage_ = Stage::waits;
};

}  // namespace sotto
