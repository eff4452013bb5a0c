#include "expert_mlp.h"

#include <algorithm>

#include <fmt/format.h>

namespace sotto {

ExpertMlp::ExpertMlp(ParameterLayout& layout, std::string_view name, std::size_t experts,
                     std::size_t width, std::size_t inside, double balance)
    : width_(width),
      inside_(inside),
      balance_(balance),
      gate_("prototypes:1", experts),
      scorer_(layout, fmt::format("{}.gate", name), width, experts) {
  experts_.reserve(experts);
  for (std::size_t e = 0; e < experts; ++e) {
    experts_.push_back({DenseLayer(layout, fmt::format("{}.{}.c_fc", name, e), width, inside),
                        DenseLayer(layout, fmt::format("{}.{}.c_proj", name, e), inside, width)});
  }
}

void ExpertMlp::route() {
  begins_.assign(experts_.size() + 1, 0);
  for (const std::uint32_t e : chosen_) {
    ++begins_[e + 1];
  }
  for (std::size_t e = 0; e < experts_.size(); ++e) {
    begins_[e + 1] += begins_[e];
  }
  std::vector<std::size_t> next = begins_;
  place_.resize(chosen_.size());
  for (std::size_t row = 0; row < chosen_.size(); ++row) {
    place_[row] = next[chosen_[row]]++;
  }
}

void ExpertMlp::forward(std::span<const float> parameters, const MatrixView& x,
                        MutableMatrixView y) {
  const auto rows = static_cast<std::size_t>(x.rows());
  scores_.resize(rows * experts_.size());
  chosen_.resize(rows);
  weights_.resize(rows);
  score(parameters, x, scores_);
  gate_.choose(scores_, chosen_, weights_);
  route();
  sorted_.resize(rows * width_);
  made_.resize(rows * width_);
  expanded_.resize(rows * inside_);
  MutableMatrixView sorted = mutable_view(sorted_, rows, width_);
  for (std::size_t row = 0; row < rows; ++row) {
    sorted.row(to_index(place_[row])) = x.row(to_index(row));
  }
  for (std::size_t e = 0; e < experts_.size(); ++e) {
    forward(e, parameters,
            {.x = rows_of(sorted_, e, width_),
             .inside = rows_of(expanded_, e, inside_),
             .dy = {},
             .inside_change = {}},
            rows_of(made_, e, width_));
  }
  const MatrixView made = view(made_, rows, width_);
  for (std::size_t row = 0; row < rows; ++row) {
    y.row(to_index(row)) = weights_[row] * made.row(to_index(place_[row]));
  }
}

void ExpertMlp::backward(std::span<const float> parameters, const MatrixView& x,
                         const MatrixView& dy, std::span<float> gradient, MutableMatrixView dx) {
  const auto rows = static_cast<std::size_t>(x.rows());
  delta_.resize(rows * width_);
  expanded_delta_.resize(rows * inside_);
  std::vector<float> weight_delta(rows);
  MutableMatrixView delta = mutable_view(delta_, rows, width_);
  const MatrixView made = view(made_, rows, width_);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto at = to_index(place_[row]);
    for (Eigen::Index k = 0; k < made.cols(); ++k) {
      weight_delta[row] += dy(to_index(row), k) * made(at, k);
    }
    delta.row(at) = weights_[row] * dy.row(to_index(row));
  }
  for (std::size_t e = 0; e < experts_.size(); ++e) {
    const auto at_made = rows_of(delta_, e, width_);
    backward(e, parameters,
             {.x = rows_of(sorted_, e, width_),
              .inside = rows_of(expanded_, e, inside_),
              .dy = at_made,
              .inside_change = rows_of(expanded_delta_, e, inside_)},
             gradient, at_made);
  }
  score_delta_.resize(scores_.size());
  gate_.backward(scores_, chosen_, weights_, weight_delta, score_delta_);
  add_balance(scores_, chosen_, score_delta_);
  score_backward(parameters, x, score_delta_, gradient, dx);
  for (std::size_t row = 0; row < rows; ++row) {
    dx.row(to_index(row)) += delta.row(to_index(place_[row]));
  }
}

Chunk ExpertMlp::parameters_of(std::size_t e) const {
  const Expert& expert = experts_[e];
  const std::size_t end = expert.contract.bias.value() + expert.contract.out;
  return {.offset = expert.expand.weight, .size = end - expert.expand.weight};
}

void ExpertMlp::forward(std::size_t e, std::span<const float> parameters, const ExpertRows& rows,
                        std::span<float> y) const {
  const std::size_t count = rows.x.size() / width_;
  if (count == 0) {
    return;
  }
  experts_[e].expand.forward(parameters, view(rows.x, count, width_),
                             mutable_view(rows.inside, count, inside_));
  relu(rows.inside);
  experts_[e].contract.forward(parameters, view(rows.inside, count, inside_),
                               mutable_view(y, count, width_));
}

void ExpertMlp::backward(std::size_t e, std::span<const float> parameters, const ExpertRows& rows,
                         std::span<float> gradient, std::span<float> dx) const {
  const std::size_t count = rows.x.size() / width_;
  const MatrixView dy = view(rows.dy, count, width_);
  const MatrixView inside = view(rows.inside, count, inside_);
  experts_[e].contract.backward(inside, dy, gradient);
  experts_[e].contract.backward_input(parameters, dy,
                                      mutable_view(rows.inside_change, count, inside_));
  relu_backward(rows.inside, rows.inside_change);
  const MatrixView at_inside = view(rows.inside_change, count, inside_);
  experts_[e].expand.backward(view(rows.x, count, width_), at_inside, gradient);
  experts_[e].expand.backward_input(parameters, at_inside, mutable_view(dx, count, width_));
}

void ExpertMlp::add_balance(std::span<const float> scores, std::span<const std::uint32_t> chosen,
                            std::span<float> score_gradient) const {
  if (balance_ > 0) {
    (void)add_balance_gradient(scores, chosen, experts_.size(), balance_, score_gradient);
  }
}

void ExpertMlp::score_backward(std::span<const float> parameters, const MatrixView& x,
                               std::span<const float> score_gradient, std::span<float> gradient,
                               MutableMatrixView dx) const {
  const MatrixView at_scores =
      view(score_gradient, static_cast<std::size_t>(x.rows()), experts_.size());
  scorer_.backward(x, at_scores, gradient);
  scorer_.backward_input(parameters, at_scores, dx);
}

}  // namespace sotto
