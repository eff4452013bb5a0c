// Streamed local steps: the model in fragments, of which one after the other is exchanged while the
// node goes on stepping. With a momentum on the mean movement this is Streaming DiLoCo.
//
// Paper: Douillard et al., "Streaming DiLoCo with overlapping communication: towards a distributed
// free lunch", 2025, arXiv:2501.18512, Algorithm 2. The paper's fragments are layers; here they are
// equal runs of parameters, so that all take as long to send. `carry` is sotto's own.
//
// Rule, at node i, around an inner algorithm for each of P fragments p, whose model is s_p. With H
// steps from one exchange of a fragment to its next, a delay of τ < ⌊H/P⌋ steps, and d the
// direction of the local rule:
//   1. after every step x_i ← x_i − d(g_i);  Δ_i,p, the sum of the d of fragment p, is 0 at first
//      and each time when it is sent
//   2. fragment p is sent after step t where t ≡ ⌊(p+1) H/P⌋ modulo H: its inner algorithm takes
//      Δ_i,p, with the outer step rule, which has moments of its own for each fragment; y = x_i,p
//   3. after step t + τ, and never sooner, the fragment takes in what its exchange made of s_p:
//        mix α:  x_i,p ← α x_i,p + (1 − α) s_p
//        carry:  x_i,p ← x_i,p + (s_p − y), which keeps the τ steps made meanwhile
// Which fragment is sent or applied follows from t alone, so that all nodes do it in one order, and
//   results do not depend on when messages come: where the exchange is not over at step t + τ, its
//   gradient waits.
// P = 1, τ = 0 and α = 0 are local_steps.h, to the bit. With τ = 0, or with carry, and one node,
//   an outer rate of 1 and messages that lose nothing, plain training results, whatever P. With τ >
//   0 and mix, (1 − α) of the τ steps is lost; α > 0 leaves nodes apart. α = 0 suits unlike data,
//   0.5, the paper's, like data, and carry an outer rule of rate 1 (figures: docs/local_steps.md).
//
// round() counts gradients. Frames and schedules of the outer rule count a fragment's exchanges.
// A run may end, and be saved, with a fragment under way: once its exchange is over, what it made
//   is saved with s_p, and is applied when it is due after load.
//
// Assumes what the inner algorithm assumes, that its exchange begins with its gradient and touches
//   s_p alone (LocalStepsFit::fragments), and a compressor to which pieces are as good as the
//   whole.
// Memory: 3 + 2/P floats a parameter (s, Δ_i, scratch; y and Δ of the fragment under way), besides
//   those of the local rule, of the inner algorithms and of their outer rules.
// Bytes a round: those of the inner algorithm, divided by H; at a time 1/P of them.
// Overlap: an exchange hides behind τ gradients.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <sotto/optim/exchange/chunks.h>
#include <sotto/optim/local_node.h>
#include <sotto/optim/node_algorithm.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/streaming.h>

namespace sotto {

class StreamedSteps final : public NodeAlgorithm {
 public:
  /// Use make_algorithm (registry.h), which validates `setup`.
  StreamedSteps(const AlgorithmInfo& info, AlgorithmSetup setup);

  Peers peers() const override { return fragments_.front().inner->peers(); }
  bool parameters_ready() const override { return !awaits_; }
  bool accepts_gradient() const override;
  bool idle() const override;

  void begin_round() override;
  Status take_gradient(std::span<const float> gradient) override;
  Result<bool> next_exchange(Exchange& out) override;
  Status complete(const Exchange& exchange) override;

  AlgorithmCounters counters() const override;
  std::vector<std::string> take_warnings() override;
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// P
  std::size_t fragments() const { return fragments_.size(); }
  /// The algorithm that exchanges a fragment, from 0; its parameters() are s_p.
  const Algorithm& inner(std::size_t fragment) const { return *fragments_[fragment].inner; }
  /// The fragment that is sent and not applied yet.
  std::optional<std::size_t> under_way() const { return current_; }

 private:
  struct Fragment {
    Chunk place;
    Round sent_after;  ///< steps of an interval after which it is sent
    std::unique_ptr<Algorithm> inner;
  };

  /// The fragment that is sent after `steps` steps of the run, if any.
  std::optional<std::size_t> sent_after(Round steps) const;
  /// Exchanges of a fragment that were begun in `steps` steps.
  Round exchanges_in(const Fragment& fragment, Round steps) const;
  /// The fragment that is under way after `steps` steps.
  std::optional<std::size_t> under_way_after(Round steps) const;
  /// The fragment under way is applied after the next step.
  bool applies_next() const;
  /// x_i,p ← its base − Δ_i,p, for all fragments: s_p, or y of the one under way.
  void place(std::span<const float> moved);
  /// 1.
  Status step(std::span<const float> gradient);
  /// 2.
  Status send(std::size_t fragment);
  /// 3., of the fragment under way.
  Status apply();
  /// Waits for the exchange, where nodes do: 3., once it is over.
  Status settle();
  /// A fault of an inner algorithm, with this one's round and the fragment in front.
  Status placed(std::size_t fragment, const Status& status) const;

  Round interval_;  // H
  Streaming streaming_;
  bool weighted_;  // weighted by the share of this node's data
  Vector synced_;  // s
  Vector moved_;   // Δ_i
  Vector work_;
  std::vector<Fragment> fragments_;
  Vector sent_from_;                    // y of the fragment under way
  Vector handed_;                       // Δ_i of that fragment, as the inner algorithm took it
  std::optional<std::size_t> current_;  // the fragment under way
  bool awaits_ = false;                 // the round ends with the exchange under way
  std::size_t exchanging_ = 0;          // exchanges
};

}  // namespace sotto
