#include "transformer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include <fmt/format.h>

#include <sotto/base/check.h>

namespace sotto {

Transformer::Layer::Layer(ParameterLayout& layout, std::string_view name,
                          const SequenceShape& input, const TransformerSize& size)
    : norm1(layout, fmt::format("{}.ln_1", name), size.width),
      attention(layout, fmt::format("{}.attn", name), size.width, size.heads, input.positions),
      norm2(layout, fmt::format("{}.ln_2", name), size.width) {
  const std::string mlp = fmt::format("{}.mlp", name);
  if (size.experts > 1) {
    experts.emplace(layout, mlp, size.experts, size.width, 4 * size.width, size.balance);
    return;
  }
  expand.emplace(layout, mlp + ".c_fc", size.width, 4 * size.width);
  contract.emplace(layout, mlp + ".c_proj", 4 * size.width, size.width);
}

Transformer::Layer::Layer(ParameterLayout& layout, std::string_view name,
                          const TransformerSize& size, const Layer& tied)
    : norm1(layout, fmt::format("{}.ln_1", name), size.width),
      attention(tied.attention),
      norm2(layout, fmt::format("{}.ln_2", name), size.width),
      expand(tied.expand),
      contract(tied.contract) {}

Transformer::Transformer(const SequenceShape& input, std::size_t classes,
                         const TransformerSize& size)
    : input_(input),
      size_(size),
      symbol_(append_block(layout_, "wte.weight", {input.symbols, size.width})),
      position_(append_block(layout_, "wpe.weight", {input.positions, size.width})),
      layers_([&] {
        std::vector<Layer> layers;
        layers.reserve(size.layers);
        for (std::size_t i = 0; i < size.layers; ++i) {
          const std::string name = fmt::format("h.{}", i);
          if (i % size.share == 0) {
            layers.emplace_back(layout_, name, input, size);
          } else {
            layers.emplace_back(layout_, name, size, layers[i - i % size.share]);
          }
        }
        return layers;
      }()),
      norm_(layout_, "ln_f", size.width),
      head_(layout_, "lm_head", size.width, classes) {}

void Transformer::initialize(std::span<float> parameters, std::uint64_t seed) const {
  const double bound = 0.02 * std::sqrt(3.0);  // of a uniform distribution with deviation 0.02
  const double residual_bound = bound / std::sqrt(2.0 * static_cast<double>(size_.layers));
  for (std::size_t i = 0; i < layout_.size(); ++i) {
    const ParameterBlock& block = layout_[i];
    const auto values = block.of(parameters);
    if (block.shape.size() == 1) {
      std::ranges::fill(values, block.name.ends_with(".weight") ? 1.0F : 0.0F);
      continue;
    }
    fill_uniform(
        values, block.name.ends_with("c_proj.weight") ? residual_bound : bound,
        {.seed = seed, .purpose = Purpose::initialize, .bucket = static_cast<std::uint32_t>(i)});
  }
}

std::size_t Transformer::activations() const {
  const std::size_t routed = size_.experts == 1 ? 0 : 7 * size_.width + 2 * size_.experts;
  const std::size_t layer = 16 * size_.width + size_.heads * input_.positions + routed;
  return input_.positions * (size_.layers * layer + 9 * size_.width + 2 * head_.out);
}

MutableMatrixView Transformer::rows_of(std::vector<float>& values, std::size_t width) const {
  return mutable_view(values, rows_, width);
}

std::span<const float> Transformer::forward(std::span<const float> parameters,
                                            std::span<const float> x, std::size_t rows) {
  begin(parameters, x, rows);
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    (void)reach_mlp(l, parameters);
    mlp_forward(layers_[l], parameters);
    leave_mlp();
  }
  return end(parameters);
}

void Transformer::begin(std::span<const float> parameters, std::span<const float> x,
                        std::size_t rows) {
  check(rows > 0 && x.size() == rows * input_.size(), "forward: rows × features values");
  x_ = x;
  rows_ = rows * input_.positions;
  for (auto* values : {&state_, &branch_, &normalized_}) {
    values->resize(rows_ * size_.width);
  }
  scores_.resize(rows_ * head_.out);
  embed(parameters);
}

std::span<const float> Transformer::end(std::span<const float> parameters) {
  norm_.forward(parameters, state_, normalized_);
  head_.forward(parameters, view(normalized_, rows_, size_.width), rows_of(scores_, head_.out));
  return scores_;
}

void Transformer::embed(std::span<const float> parameters) {
  const std::size_t positions = input_.positions;
  MutableMatrixView state = rows_of(state_, size_.width);
  state.noalias() = view(x_, rows_, input_.symbols) *
                    view(parameters.subspan(symbol_), input_.symbols, size_.width);
  const MatrixView position = view(parameters.subspan(position_), positions, size_.width);
  for (std::size_t row = 0; row < rows_; row += positions) {
    state.middleRows(to_index(row), to_index(positions)) += position;
  }
}

std::span<const float> Transformer::reach_mlp(std::size_t l, std::span<const float> parameters) {
  Layer& layer = layers_[l];
  const std::size_t width = size_.width;
  MutableMatrixView branch = rows_of(branch_, width);
  layer.normalized1.resize(state_.size());
  layer.normalized2.resize(state_.size());
  layer.norm1.forward(parameters, state_, layer.normalized1);
  layer.attention.forward(parameters, view(layer.normalized1, rows_, width), branch);
  rows_of(state_, width) += branch;
  layer.norm2.forward(parameters, state_, layer.normalized2);
  return layer.normalized2;
}

void Transformer::leave_mlp() { rows_of(state_, size_.width) += rows_of(branch_, size_.width); }

void Transformer::mlp_forward(Layer& layer, std::span<const float> parameters) {
  const MatrixView x = view(layer.normalized2, rows_, size_.width);
  MutableMatrixView branch = rows_of(branch_, size_.width);
  if (layer.experts) {
    layer.experts->forward(parameters, x, branch);
    return;
  }
  const std::size_t inside = layer.expand->out;
  layer.expanded.resize(rows_ * inside);
  layer.expand->forward(parameters, x, rows_of(layer.expanded, inside));
  relu(layer.expanded);
  layer.contract->forward(parameters, view(layer.expanded, rows_, inside), branch);
}

void Transformer::backward(std::span<const float> parameters, std::span<const float> score_gradient,
                           std::span<float> gradient) {
  begin_backward(parameters, score_gradient, gradient);
  use_.resize(size_.share == 1 ? 0 : gradient.size());
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const bool first_use = i % size_.share == size_.share - 1;  // on the way back
    const std::span<float> blocks = first_use ? gradient : use_;
    mlp_backward(layers_[i], parameters, blocks);
    leave_mlp_backward(layers_[i], parameters, gradient, blocks);
    if (!first_use) {
      add_use(i, gradient);
    }
  }
  embed_backward(gradient);
}

void Transformer::begin_backward(std::span<const float> parameters,
                                 std::span<const float> score_gradient, std::span<float> gradient) {
  check(score_gradient.size() == scores_.size(), "backward: rows × positions × classes values");
  const MatrixView dy = view(score_gradient, rows_, head_.out);
  head_.backward(view(normalized_, rows_, size_.width), dy, gradient);
  head_.backward_input(parameters, dy, rows_of(branch_, size_.width));
  delta_.assign(state_.size(), 0.0F);
  norm_.backward(parameters, branch_, gradient, delta_);
}

void Transformer::add_use(std::size_t l, std::span<float> gradient) const {
  const std::string owner = fmt::format("h.{}.", l - l % size_.share);
  for (const ParameterBlock& block : layout_) {
    if (block.name.starts_with(owner) && !block.name.starts_with(owner + "ln_")) {
      const auto sum = block.of(gradient);
      const auto use = block.of(std::span(use_));
      std::ranges::transform(sum, use, sum.begin(), std::plus<>());
    }
  }
}

void Transformer::leave_mlp_backward(Layer& layer, std::span<const float> parameters,
                                     std::span<float> gradient, std::span<float> blocks) {
  const std::size_t width = size_.width;
  const MatrixView delta = view(delta_, rows_, width);
  layer.norm2.backward(parameters, branch_, gradient, delta_);
  layer.attention.backward(parameters, view(layer.normalized1, rows_, width), delta, blocks,
                           rows_of(branch_, width));
  layer.norm1.backward(parameters, branch_, gradient, delta_);
}

void Transformer::mlp_backward(Layer& layer, std::span<const float> parameters,
                               std::span<float> blocks) {
  const MatrixView x = view(layer.normalized2, rows_, size_.width);
  const MatrixView delta = view(delta_, rows_, size_.width);
  MutableMatrixView dx = rows_of(branch_, size_.width);
  if (layer.experts) {
    layer.experts->backward(parameters, x, delta, blocks, dx);
    return;
  }
  const std::size_t inside = layer.expand->out;
  expanded_delta_.resize(layer.expanded.size());
  layer.contract->backward(view(layer.expanded, rows_, inside), delta, blocks);
  layer.contract->backward_input(parameters, delta, rows_of(expanded_delta_, inside));
  relu_backward(layer.expanded, expanded_delta_);
  const MatrixView expanded_delta = view(expanded_delta_, rows_, inside);
  layer.expand->backward(x, expanded_delta, blocks);
  layer.expand->backward_input(parameters, expanded_delta, dx);
}

void Transformer::embed_backward(std::span<float> gradient) const {
  const std::size_t positions = input_.positions;
  const MatrixView delta = view(delta_, rows_, size_.width);
  mutable_view(gradient.subspan(symbol_), input_.symbols, size_.width).noalias() =
      view(x_, rows_, input_.symbols).transpose() * delta;
  MutableMatrixView position = mutable_view(gradient.subspan(position_), positions, size_.width);
  position.setZero();
  for (std::size_t row = 0; row < rows_; row += positions) {
    position += delta.middleRows(to_index(row), to_index(positions));
  }
}

}  // namespace sotto
