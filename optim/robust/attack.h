// Attacks on gossip, as tools for tests and for judging rules: what a Byzantine node sends in place
// of its model. Nothing here is for a run that is to succeed.
//
// Thread safety: pure functions and plain values, but for an oracle, which is the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>

namespace sotto {

/// x is the victim's model after its local step, x_j those of its honest neighbours, W the mixing
/// weights; the attackers work together, so that all of a victim's send it the same.
struct Attack {
  /// The model that the attackers send.
  enum class Kind {
    alie,       ///< mean − z × standard deviation of x and the x_j, by coordinate (a little is
                ///< enough; Baruch et al. 2019, arXiv:1902.06156)
    ipm,        ///< −ε × mean of x and the x_j (inner-product manipulation; Xie et al. 2019,
                ///< arXiv:1903.03936)
    dissensus,  ///< x − ε Σ_j W_ij (x_j − x) / Σ_b W_ib, b the victim's attackers: undoes its
                ///< gossip ε times (He et al. 2022, arXiv:2202.01545)
    /// In the direction of ipm, 1.5 times as far as the nearest x_j, and turned so that it does not
    /// push along the victim's own step: made against clipped:auto.
    near_ipm,
    sign_flip,  ///< −1 × the attacker's own model
    noise,      ///< the attacker's own model + N(0, σ²) in each coordinate
    /// The attacker's own model, trained on labels c − 1 − y: a matter of its data alone.
    label_flip,
  };
  Kind kind = Kind::sign_flip;
  double strength = 0;  ///< z, ε or σ

  /// The specification that parses to this attack.
  std::string spec() const;
  /// Takes the victim's and its honest neighbours' models into account.
  bool omniscient() const;
};

/// Parses alie[:Z], ipm[:EPSILON], dissensus[:EPSILON], near-ipm, sign-flip, noise[:SIGMA] or
/// label-flip. Throws Error.
Attack parse_attack(std::string_view spec);

/// The model that honest node `rank` sent, or is about to send, last; empty before the first.
using ModelOracle = std::function<std::span<const float>(Rank rank)>;
/// The attackers of a job, their attack, and their knowledge of honest nodes.
struct Adversary {
  std::vector<Rank> nodes;  ///< the Byzantine nodes, sorted
  Attack attack;
  /// The models of honest nodes, for omniscient attackers. Without it each knows the models that
  /// honest neighbours sent it in the round before, as over a real network.
  ModelOracle posted = {};
  /// The steps u = x^½ − x that led to those models, for near_ipm; without it the message is not
  /// turned.
  ModelOracle step = {};

  /// Whether the node is one of the attackers.
  bool includes(Rank rank) const;
};

/// An honest neighbour of the victim, and W_ij.
struct Witnessed {
  std::span<const float> model;
  double weight = 0;
};

/// Writes the message for the victim. Omniscient attacks only. `victim` is x, `step` u or empty,
/// `liars` Σ_b W_ib > 0.
void craft(const Attack& attack, std::span<const float> victim, std::span<const float> step,
           std::span<const Witnessed> honest, double liars, std::span<float> out);

}  // namespace sotto
