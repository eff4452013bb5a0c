// Push-sum: SGD on directed graphs, in full precision or compressed.
//
// Papers: He et al., "Central server free federated learning over single-sided trust social
// networks", 2019, arXiv:1910.04956 (online push-sum); Assran et al., "Stochastic gradient push",
// ICML 2019, arXiv:1811.10792. With C exact and η = 1 the rule below is theirs.
//
// Rule, at node i, with P_ij the share of its mass that j gives to i (columns sum to 1) and
// z_i = x_i / ω_i, and parameters() holds z_i; x_i = z_i and ω_i = 1 at the start, δ_i = 0:
//   1. x_i^½ = x_i − γ ∇f_i(z_i)            (gradient at z, step on x)
//   2. v_i = x_i^½ + δ_i;  send C(v_i), ω_i and the share η P_ji to each j;  δ_i ← v_i − C(v_i)
//   3. x_i ← x_i^½ + η (Σ_j P_ij C(v_j) − C(v_i)),  ω_i ← ω_i + η (Σ_j P_ij ω_j − ω_i)
// Mixing what comes in without ω converges to a point weighted by how much is heard of each node.
//
// Mass: what i loses in step 3 is what the others gain, because i's own share is 1 minus the shares
//   that it gives. So Σ ω_i = n, in double precision, and Σ x_i follows SGD without compression, to
//   float32's rounding, *whatever C is*: an error of C moves mass between nodes, and is sent again
//   with δ. This holds for every graph and every C by construction, and a test holds it.
// The compressed form with its error feedback is this library's own: DeepSqueeze's rule
//   (arXiv:1907.07346) on shares instead of a doubly stochastic W. Convergence is proven here for
//   exact C only (the papers); for other C it is measured. Like DeepSqueeze, C acts on the model,
//   so that the nodes never quite agree. (Taheri et al., ICML 2020, arXiv:2002.09964 compress
//   differences to public copies instead, which needs a static graph.)
// Trust is one-sided: a node knows its own out-shares and applies to what it hears the share that
//   the sender states; it need not know how much the sender gives to others.
//
// Assumes columns of P sum to 1 and a graph that is strongly connected over its period; directed
//   and changing graphs are fine. η = 1 for exact C, else by default min(1, α^(−2/3) − 1), α
//   measured on Gaussian vectors. A step on x moves z by γ / ω_i: a graph on which some ω_i gets
//   very small needs a small γ, and one with ω_i < 2^-64 is a fault.
//   One γ at all nodes: with γ_i of their own the models settle where Σ_i γ_i ∇f_i = 0.
// Memory: 4 floats a parameter (x, δ, v, x^½), besides those of the step rule and the frames; a
//   further frame for each further share among a node's out-edges.
// Bytes a round: |C(v)| + 80 to each out-neighbour, 16 of them the share and ω.
// Overlap: the next model needs the neighbours' bytes; with a gradient that does not wait for them
//   (delayed_gradient.h) the exchange hides behind it.
#pragma once

#include <vector>

#include <sotto/base/float_vector.h>
#include <sotto/optim/exchange/frame_sum.h>
#include <sotto/optim/node_algorithm.h>

namespace sotto {

/// The two doubles in front of C(v_j) in a payload.
struct PushHeader {
  static constexpr std::size_t kBytes = 2 * sizeof(double);

  double share = 0;  ///< η P_ij, a float32 value
  double mass = 0;   ///< ω_j before the exchange
};

class PushSum final : public MailAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// Use make_algorithm (registry.h), which validates `setup` and chooses η.
  explicit PushSum(AlgorithmSetup setup);

  Status take_gradient(std::span<const float> gradient) override;
  Status take_direction(const Direction& d) override;
  Status step_ahead(const Direction& d, std::span<float> stepped) override;
  Status complete(const Exchange& exchange) override;

  AlgorithmCounters counters() const override;
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// x_i, ω_i and δ_i
  std::span<const float> biased() const { return x_; }
  double mass() const { return mass_; }
  std::span<const float> error() const { return error_; }

 private:
  /// Sends shares of x_i^½ with the error, once it is known, and of ω_i.
  Status send_share();
  /// η P_ji as it is sent: rounded once, so that giver and taker use the same number.
  float share(const Edge& edge) const { return eta_ * edge.weight; }
  /// Σ_j η P_ji over the out-edges of the round under way: what this node gives away.
  double given() const;
  /// Gives each share among the round's out-edges that differs from the posted frame's its own
  /// frame.
  void frame_other_shares();
  /// Reads the part before the encoding along an in-edge into heard_, or describes its fault.
  Status read_header(std::size_t edge);
  Status check_mass(double mass) const;
  void sum_changes(double gives);

  float eta_;
  FrameSum sum_;
  double mass_ = 1;                    // ω_i
  Vector x_;                           // x_i; x_i^½ while an exchange is under way
  Vector error_;                       // δ_i
  Vector v_;                           // v_i, then scratch
  Vector half_;                        // γ ∇f_i, then x_i^½
  std::vector<PushHeader> heard_;      // headers by in-edge
  std::vector<FrameVector> reframed_;  // frames with further shares
};

}  // namespace sotto
