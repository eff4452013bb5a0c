// Self-centred clipping (ClippedGossip): x ← x + Σ_j W_ij min(1, τ / ‖Δ_j‖) Δ_j.
//
// Paper: He, Karimireddy, Jaggi, "Byzantine-robust decentralized learning via ClippedGossip",
// arXiv:2202.01545, equation (3). Whatever the neighbours send, the model moves by at most
// τ Σ_{j≠i} W_ij; where all are within τ it is plain gossip. Everything hangs on τ:
// - fixed;
// - the second-largest ‖Δ_j‖, as the paper's public code has it: holds against one attacker;
// - auto, sotto's own. The paper's τ asks for the distances of the honest neighbours, which a node
//   does not know; with half of its neighbours attackers no rank of the distances gives them
//   either. What a node does know is its own step u, which nobody else has a hand in:
//     1. D is the smallest ‖Δ_j‖ > 0; a neighbour beyond 2 D is set aside.
//     2. A neighbour with ⟨Δ_j, u⟩ > 0 is set aside. Gossip among honest nodes brakes: what u has
//        of own noise and own data, the others lack. One that pushes further along u drives nodes
//        apart.
//     3. τ = min(D, (K ‖u‖)² / D): the nearest distance as long as it is of the order of the own
//        steps (K = 10), and the less the farther even the nearest is.
//   Then τ ≤ K ‖u‖ always: over a run, neighbours move a model by at most K Σ_{j≠i} W_ij times the
//   length of its own steps, and where these go to zero so does their influence. Attackers that
//   come close to a model and brake are not told from honest nodes; a small K bounds what they do,
//   and what honest neighbours can do.
// Numerics: norms and products are Ops' reductions; a Δ_j that overflows is set aside.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sotto/optim/robust/aggregation.h>

namespace sotto {

class Clipped final : public Aggregation {
 public:
  /// How τ is chosen: as given, as the second largest distance, or as clipped:auto does it.
  enum class Radius { fixed, second_largest, automatic };

  /// `value` is τ where it is fixed, and K where it is automatic.
  Clipped(Radius radius, double value, std::size_t neighbours, const Ops& ops);

  static constexpr double kDefaultReach = 10;  ///< K
  /// Beyond this multiple of the nearest distance a neighbour is set aside.
  static constexpr double kOutlier = 2;

  std::string spec() const override;
  std::size_t aggregate(const Neighbourhood& models, std::span<float> out) override;

  /// τ of the last call.
  double tau() const { return tau_; }

 private:
  double second_largest() const;
  /// τ, from distances_; sets those aside that are to have no influence.
  double automatic(const Neighbourhood& models);

  Radius radius_;
  double value_;
  const Ops& ops_;
  double tau_ = 0;
  std::vector<double> distances_;  // ‖Δ_j‖; infinite: set aside
};

}  // namespace sotto
