// A layer of experts in place of an mlp: each row goes to one of E mlps, the one with the highest
// score, and comes back times that score's share of a softmax over all of them:
//
//   s = x G + g,  e = argmax s,  y = softmax(s)_e (B_e relu(A_e x + a_e) + c_e)
//
// This is top-1 routing as in Switch (Fedus et al., arXiv:2101.03961), the gate `prototypes:1` of
// ExpertGate, with room for every row. Experts multiply parameters and leave the work of a row as
// it is.
//
// Balance: the loss has λ E Σ_e c_e m_e in addition, c_e the share of the rows that go to expert e
// and m_e the mean of softmax(s)_e over all rows (expert_gate.h). Its gradient pulls the gate
// towards experts that have few rows; evaluations do not count it.
//
// A pass is either whole (forward, backward), or taken apart for a caller who carries rows to
// experts elsewhere (experts_at_nodes.h): scores, then each expert by itself; such a pass keeps
// nothing here.
//
// Private to the models. It keeps what its last whole forward pass computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <sotto/groups/programs/expert_gate.h>
#include <sotto/optim/exchange/chunks.h>

#include "dense_layer.h"

namespace sotto {

/// The rows of one expert in a pass, a matrix each, row-major.
struct ExpertRows {
  std::span<const float> x;        ///< what came in, rows × width
  std::span<float> inside;         ///< what forward keeps for backward, rows × inside
  std::span<const float> dy;       ///< ∂loss/∂ what the expert made of x; of backward alone
  std::span<float> inside_change;  ///< room, as long as `inside`; of backward alone
};

class ExpertMlp {
 public:
  /// Appends the blocks NAME.gate, and for each expert e NAME.e.c_fc and NAME.e.c_proj, to the
  /// layout; `inside` is the width of an expert's inside, `balance` is λ.
  ExpertMlp(ParameterLayout& layout, std::string_view name, std::size_t experts, std::size_t width,
            std::size_t inside, double balance);

  /// y = what the experts make of the rows of x.
  void forward(std::span<const float> parameters, const MatrixView& x, MutableMatrixView y);
  /// Writes the layer's part of the gradient, and dx, for the x of the last forward pass.
  void backward(std::span<const float> parameters, const MatrixView& x, const MatrixView& dy,
                std::span<float> gradient, MutableMatrixView dx);

  std::size_t experts() const { return experts_.size(); }
  std::size_t width() const { return width_; }
  std::size_t inside() const { return inside_; }
  /// The parameters of expert e.
  Chunk parameters_of(std::size_t e) const;
  /// Scores of the rows of x for each expert.
  void score(std::span<const float> parameters, const MatrixView& x,
             std::span<float> scores) const {
    scorer_.forward(parameters, x,
                    mutable_view(scores, static_cast<std::size_t>(x.rows()), experts()));
  }
  /// y = what expert e makes of its rows, without a weight.
  void forward(std::size_t e, std::span<const float> parameters, const ExpertRows& rows,
               std::span<float> y) const;
  /// Writes the gradient of expert e, and ∂loss/∂x, which may be where dy is.
  void backward(std::size_t e, std::span<const float> parameters, const ExpertRows& rows,
                std::span<float> gradient, std::span<float> dx) const;
  /// Adds the gradient of the balance loss to ∂loss/∂scores, whose first choices are `chosen`.
  void add_balance(std::span<const float> scores, std::span<const std::uint32_t> chosen,
                   std::span<float> score_gradient) const;
  /// Writes the gradient of the scores' layer, and dx by way of the scores.
  void score_backward(std::span<const float> parameters, const MatrixView& x,
                      std::span<const float> score_gradient, std::span<float> gradient,
                      MutableMatrixView dx) const;

 private:
  struct Expert {
    DenseLayer expand;    // A and a
    DenseLayer contract;  // B and c
  };
  /// Sorts rows by expert.
  void route();
  /// Rows of expert e in a matrix that is sorted by expert.
  std::span<float> rows_of(std::vector<float>& sorted, std::size_t e, std::size_t width) const {
    return std::span(sorted).subspan(begins_[e] * width, (begins_[e + 1] - begins_[e]) * width);
  }

  std::size_t width_;
  std::size_t inside_;
  double balance_;
  ExpertGate gate_;
  DenseLayer scorer_;
  std::vector<Expert> experts_;
  std::vector<float> scores_;
  std::vector<std::uint32_t> chosen_;  // expert of each row
  std::vector<float> weights_;         // its weight
  std::vector<std::size_t> begins_;    // where the rows of each expert begin, when sorted
  std::vector<std::size_t> place_;     // place of each row when sorted
  std::vector<float> sorted_;          // x, sorted
  std::vector<float> expanded_;        // the experts' insides
  std::vector<float> made_;            // what the experts made
  std::vector<float> delta_;           // ∂loss/∂made; then ∂loss/∂sorted
  std::vector<float> expanded_delta_;
  std::vector<float> score_delta_;
};

}  // namespace sotto
