// APMSqueeze and 1-bit Adam: Adam on all nodes' mean gradient, which after a while exchanges a
// compressed momentum in place of the gradient.
//
// Papers: Tang et al., "APMSqueeze: a communication efficient Adam-preconditioned momentum SGD
// algorithm", 2020, arXiv:2008.11343; Tang et al., "1-bit Adam: communication efficient large-scale
// training with Adam's convergence speed", ICML 2021, arXiv:2102.02888.
// The two share the rule below. They differ in T_w, the number of rounds before the variance is
// frozen: `apmsqueeze` is given it (freeze_step), and `onebit-adam` finds it, unless given.
//
// Chunk k of every vector (chunks.h) belongs to node k, through which all exchanges go: all nodes
// send it their chunks k, it sends all nodes the result. Sums are in rank order, and all nodes
// decode the same bytes, so that models and moments stay equal to the bit.
//
// Rule of the first T_w rounds: plain Adam (adam.h) on the mean gradient, in full precision.
// Rule of the later ones, v frozen, with errors δ_i and δ̄ that start at 0:
//   1. node i:         m_i = β₁ m̄ + (1 − β₁) (g_i + λ x);  send C(m_i + δ_i), chunk k to node k;
//                      δ_i ← m_i + δ_i − C(m_i + δ_i)
//   2. chunk's owner:  a = mean_i C(m_i + δ_i) + δ̄;  send C(a) to all;  δ̄ ← a − C(a)
//   3. all:            m̄ = the n chunks C(a);  x ← x − γ m̂ / (√v̂ + ε)
// Each chunk is encoded by itself, at its own length: nothing is padded.
//
// Bias correction: as torch.optim.Adam throughout. m̂ = m̄ / (1 − β₁^t), where t counts on over
//   both phases; v̂ = v / (1 − β₂^T_w): what is frozen is the preconditioner of the last plain
//   round, so that no step length jumps. With C exact this is Adam whose variance stands still.
// Coordinates with v = 0 (no gradient in the first T_w rounds, or one whose square underflows) stay
//   where they are for ever, although C may send something for them: they carry no momentum, and
//   are taken as 0 before each encoding.
// T_w, when it is not given: the first t = 2Δ, 3Δ, 4Δ, … with ‖v̂_t‖₁ ≥ 0.96 ‖v̂_{t−Δ}‖₁ > 0, where
//   Δ = 1/(1 − β₂) rounded. The rule of the second paper, on v̂ because v itself grows from 0 and
//   would always pass. All nodes hold the same v, so that they freeze in the same round.
//
// Assumes a contraction C, the step rule adam, and nothing of W: the graph is ignored. All nodes
//   start from the same x.
// Memory: 3 floats a parameter (δ_i, work, direction) and 2/n (δ̄, a), besides Adam's 2 and the
//   frames, which have room for the full precision of the first rounds.
// Bytes a round: 2 (n − 1) frames of a chunk each, 2 (n − 1)/n |C(m)| + 128 (n − 1) where C is what
//   the phase sends: 8 d (n − 1)/n bytes of values before T_w, with `sign` a 32nd of it thereafter.
// Overlap: none, the step needs the gradients.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <sotto/optim/adam.h>
#include <sotto/optim/algorithm.h>
#include <sotto/optim/chunks.h>
#include <sotto/optim/local_node.h>
#include <sotto/optim/mailbox.h>

namespace sotto {

class ApmSqueeze final : public Algorithm {
 public:
  /// Use make_algorithm (registry.h), which validates `setup`. `id` is apmsqueeze or onebit_adam.
  ApmSqueeze(AlgorithmId id, AlgorithmSetup setup);

  std::string_view name() const override { return node_.name(); }
  Peers peers() const override;
  std::span<const float> parameters() const override { return node_.x(); }
  Round round() const override { return node_.round(); }
  bool parameters_ready() const override { return !mail_.open(); }
  bool accepts_gradient() const override { return node_.in_round() && !mail_.open(); }
  bool idle() const override { return !node_.in_round(); }

  bool begin_round(Exchange& out) override;
  Status gradient_ready(std::span<const float> gradient, Exchange& out, bool* post) override;
  Status frame_arrived(Rank from, std::span<const std::byte> frame) override;
  Result<bool> exchange_done(Exchange& out) override;

  AlgorithmCounters counters() const override;
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// The round under way, or the next one, has the variance frozen.
  bool frozen() const { return node_.round() >= freeze_round_; }
  /// m̄
  std::span<const float> momentum() const { return adam_.momentum(); }
  /// v
  std::span<const float> variance() const { return adam_.variance(); }
  /// δ_i
  std::span<const float> error() const { return error_; }
  /// δ̄ of this node's chunk
  std::span<const float> chunk_error() const { return chunk_error_; }

 private:
  static constexpr std::uint16_t kScatter = 0;  // phases of a round: chunks to their owners,
  static constexpr std::uint16_t kGather = 1;   // and results to all
  static constexpr Round kNotYet = std::numeric_limits<Round>::max();

  Chunk chunk(Rank owner) const { return chunk_of(node_.dimension(), node_.nodes(), owner); }
  /// The number of another node's edge.
  std::size_t edge(Rank peer) const;
  /// What encodes the round under way: C, or full precision before the freeze.
  const Compressor& codec() const { return frozen() ? node_.compressor() : *exact_; }
  ExchangePlan plan(std::uint16_t phase) const;

  /// Zeroes what belongs to coordinates without variance; `values` start at parameter `offset`.
  void mute(std::span<float> values, std::size_t offset) const;
  /// Encodes v; when frozen, v is left with the residual.
  std::span<const std::byte> encode(std::span<float> v, std::span<std::byte> out,
                                    std::uint32_t bucket);
  /// y ← y + what `from` sent, this node included.
  Status decode(Rank from, std::span<float> y);

  /// 2. Takes all nodes' chunks and sends the result.
  Status average(Exchange& out);
  /// 3. Takes all results and moves x.
  Status step();
  /// Sets freeze_round_ once the variance has become stable.
  void watch_variance();

  LocalNode node_;
  Adam& adam_;  // node_'s step rule
  std::unique_ptr<Compressor> exact_;
  std::vector<Edge> others_;           // all nodes but this one
  std::vector<std::size_t> elements_;  // of the others' chunks
  std::vector<Parcel> parcels_;        // chunks on their way to the others
  Mailbox mail_;
  std::vector<std::byte> own_chunk_;  // the encoding of the chunk that this node owns
  std::span<const std::byte> own_payload_;
  std::vector<float> error_;
  std::vector<float> chunk_error_;
  std::vector<float> mean_;       // a, of this node's chunk
  std::vector<float> work_;       // m_i + δ_i, then the new m̄; before the freeze the gradients
  std::vector<float> direction_;  // d, then the next x
  Round freeze_round_;            // T_w
  double last_norm_ = 0;          // ‖v̂‖₁ when it was last looked at
};

}  // namespace sotto
