// The gate of a layer of experts: which experts a token goes to, by its scores, and with what
// weights.
//
// - `top:k`: the k highest scores, with a softmax over these k (the naive gate of FastMoE: He et
//   al., arXiv:2103.13262).
// - `prototypes:k`: the experts in k equal blocks, and of each block the highest score, with its
//   share of a softmax over the block (k top-1 prototyping: Yang et al., "M6-T", arXiv:2105.15082).
//
// Equal scores go to the lower expert. Scores and weights are matrices of a row a token.
//
// Plain values and pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sotto {

class ExpertGate {
 public:
  /// Reads `top:K` or `prototypes:K` for `experts` experts. Throws Error (field "gate") for another
  /// text, for K beyond the experts, and for blocks that are not equal.
  ExpertGate(std::string_view text, std::size_t experts);

  /// Number of experts that a token goes to, k.
  std::size_t choices() const { return choices_; }
  std::size_t experts() const { return experts_; }

  /// Writes the k experts of each token, with the highest score first (top) or by block
  /// (prototypes), and their weights. `scores` has `experts` columns and is finite, the outputs
  /// have k.
  void choose(std::span<const float> scores, std::span<std::uint32_t> chosen,
              std::span<float> weights) const;
  /// Writes ∂L/∂scores from ∂L/∂weights, for what `choose` made of the same scores.
  void backward(std::span<const float> scores, std::span<const std::uint32_t> chosen,
                std::span<const float> weights, std::span<const float> weight_gradient,
                std::span<float> score_gradient) const;
  /// The text that reads as this gate.
  std::string text() const;

 private:
  /// Experts that compete for a choice.
  std::size_t block() const { return prototypes_ ? experts_ / choices_ : experts_; }

  bool prototypes_ = false;
  std::size_t choices_ = 1;
  std::size_t experts_;
};

/// The balance loss of this node's tokens, E Σ_e c_e m_e: c_e is the share of tokens whose first
/// choice is e, m_e the mean of softmax(scores)_e. It is 1 where both are even. Adds its gradient,
/// times `scale`, to `score_gradient`; c_e counts as constant. (GShard: Lepikhin et al.,
/// arXiv:2006.16668; c_e and m_e are this node's own, as in FastMoE.)
double add_balance_gradient(std::span<const float> scores, std::span<const std::uint32_t> chosen,
                            std::size_t experts, double scale, std::span<float> score_gradient);

}  // namespace sotto
