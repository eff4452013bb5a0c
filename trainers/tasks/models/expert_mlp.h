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
// Private to the models. It keeps what its last forward pass computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <sotto/groups/programs/expert_gate.h>

#include "dense_layer.h"

namespace sotto {

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
