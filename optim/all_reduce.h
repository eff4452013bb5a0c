// All-reduce SGD: every node steps along the mean of all gradients. The centralized baseline.
//
// Source: ring reduce-scatter and all-gather, Patarasuk and Yuan, "Bandwidth optimal all-reduce
// algorithms for clusters of workstations", J. Parallel Distrib. Comput. 69, 2009.
//
// Rule, at every node:  x ← x − γ (1/n) Σ_i g_i.
//
// The gradient is cut into n chunks, of which the first d mod n are one element longer (so some
// are empty when d < n). In phase p = 0 … n − 2 node r sends its partial sum of chunk r − p to
// node r + 1 and adds the one that it receives, of chunk r − p − 1; all indices modulo n. Node r
// then has the whole sum of chunk r + 1 and multiplies it by 1/n. In phases n − 1 … 2n − 3 these
// means travel round the ring unchanged. A chunk c is thus summed in ring order, g_c + g_{c+1} +
// …, and all nodes decode the same bytes: their models stay equal to the bit.
//
// Assumes nothing of W: the graph is ignored. C exact. With another C (allow_contract_violation)
//   the first half compresses the partial sum at every hop; the nodes still stay equal.
// Memory: 2 floats a parameter (sum, direction), besides those of the step rule and the frames.
// Bytes a round: 2 (n − 1) frames of ⌈d/n⌉ or ⌊d/n⌋ elements: 8 d (n − 1)/n + 128 (n − 1).
// Overlap: none, the sum needs the gradient.
#pragma once

#include <cstddef>
#include <vector>

#include <sotto/optim/algorithm.h>
#include <sotto/optim/local_node.h>
#include <sotto/optim/mailbox.h>

namespace sotto {

class AllReduceSgd final : public Algorithm {
 public:
  /// Use make_algorithm (registry.h), which validates `setup`.
  explicit AllReduceSgd(AlgorithmSetup setup);

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
  void save(ByteBuffer& out) const override { node_.save(out); }
  Status load(ByteReader& in) override { return node_.load(in); }

 private:
  /// Chunk r − `back`, modulo n, of the sum; r is this node.
  std::span<float> chunk(int back);
  int phases() const { return 2 * (node_.nodes() - 1); }
  bool gathering(int phase) const { return phase >= node_.nodes() - 1; }

  /// Encodes (or forwards) the chunk of `phase` and asks for its exchange.
  Status post_phase(int phase, Exchange& out);
  /// Takes the chunk that came in the phase under way.
  Status take_chunk();
  /// x ← x − d at the mean gradient.
  Status step();

  LocalNode node_;
  Edge next_;      // whom this node sends to
  Edge previous_;  // whom it hears
  Mailbox mail_;
  std::vector<float> sum_;
  std::vector<float> direction_;
};

}  // namespace sotto
