// A causal transformer that predicts what follows each position of a sequence, in the form of GPT-2
// (Radford et al. 2019) with layer normalization in front of each part:
//
//   h = x E + p;   for each layer:  h ← h + attention(norm₁(h));   h ← h + mlp(norm₂(h))
//   scores = norm(h) Wᵀ + b;   mlp(u) = B relu(A u + a) + c, four times as wide inside
//
// ReLU is used in place of GELU (as by Vaswani et al. 2017), and the scores have a matrix and a
// bias of their own. Blocks are named as in GPT-2: wte.weight [symbols, width] is E, wpe.weight
// [positions, width] is p; of layer l, h.l.ln_1, h.l.attn.c_attn, h.l.attn.c_proj, h.l.ln_2,
// h.l.mlp.c_fc, h.l.mlp.c_proj; then ln_f and lm_head.
// Weights start uniform with GPT-2's deviations: 0.02, and 0.02 / √(2 layers) in every c_proj,
// which adds to h; those of normalizations at 1, biases at 0.
//
// Experts: with `experts` E, each layer has E mlps, of which every position goes to one, and a gate
// (expert_mlp.h): h.l.mlp.gate, and h.l.mlp.e.c_fc and h.l.mlp.e.c_proj of expert e.
//
// Tied layers: with `share` s, each s layers that follow each other have one attention and one mlp,
// and normalizations of their own, as in WideNet (Xue et al. 2022, arXiv:2107.11817). The tensors
// have the name of the first of the s layers, the others lack them; their gradient is the sum over
// their s uses. Training tied layers first and untying them later (trainers/tasks/untie.h) is the
// "pseudo-to-real" strategy (Lin et al. 2021, arXiv:2110.03888).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <sotto/trainers/tasks/model.h>

#include "attention.h"
#include "dense_layer.h"
#include "expert_mlp.h"
#include "layer_norm.h"

namespace sotto {

struct TransformerSize {
  std::size_t layers = 2;
  std::size_t width = 64;
  std::size_t heads = 4;    ///< divides the width
  std::size_t share = 1;    ///< layers that have their tensors in common; divides the layers
  std::size_t experts = 1;  ///< mlps of a layer; more than 1 only where no layers share
  double balance = 0;       ///< weight of the experts' balance loss, of each layer
};

class Transformer final : public Model {
 public:
  Transformer(const SequenceShape& input, std::size_t classes, const TransformerSize& size);

  const ParameterLayout& layout() const override { return layout_; }
  void initialize(std::span<float> parameters, std::uint64_t seed) const override;
  std::size_t positions() const override { return input_.positions; }
  std::size_t activations() const override;
  std::span<const float> forward(std::span<const float> parameters, std::span<const float> x,
                                 std::size_t rows) override;
  void backward(std::span<const float> parameters, std::span<const float> score_gradient,
                std::span<float> gradient) override;
  Transformer* with_experts() override { return size_.experts > 1 ? this : nullptr; }

  // Both passes in pieces, for a caller that lets rows go to experts elsewhere at each mlp:
  //   begin; for each layer: reach_mlp, branch() ← mlp, leave_mlp; end
  //   begin_backward; for each layer, the last one first: branch() ← ∂loss/∂reach_mlp's rows, which
  //   the mlp makes of delta(), leave_mlp_backward; end_backward
  // No piece writes the gradient of experts.

  /// Number of layers.
  std::size_t layers() const { return layers_.size(); }
  /// Elements of a row, of which each position of each example has one.
  std::size_t width() const { return size_.width; }
  /// The experts of layer l; there are some (with_experts).
  const ExpertMlp& experts(std::size_t l) const { return layers_[l].experts.value(); }
  /// Begins a pass, as forward does.
  void begin(std::span<const float> parameters, std::span<const float> x, std::size_t rows);
  /// Goes on to the mlp of layer l, and gives its rows, which stay until the next pass.
  std::span<const float> reach_mlp(std::size_t l, std::span<const float> parameters);
  /// Room for what an mlp makes of its rows, and on the way back for ∂loss/∂ these.
  std::span<float> branch() { return branch_; }
  /// Takes what branch() has.
  void leave_mlp();
  /// The scores of all rows.
  std::span<const float> end(std::span<const float> parameters);
  /// Begins the way back, at the last layer's mlp.
  void begin_backward(std::span<const float> parameters, std::span<const float> score_gradient,
                      std::span<float> gradient);
  /// ∂loss/∂ what the mlp made.
  std::span<const float> delta() const { return delta_; }
  /// Goes on from layer l's mlp to that of the layer before.
  void leave_mlp_backward(std::size_t l, std::span<const float> parameters,
                          std::span<float> gradient) {
    leave_mlp_backward(layers_[l], parameters, gradient, gradient);
  }
  /// Ends the way back.
  void end_backward(std::span<float> gradient) const { embed_backward(gradient); }

 private:
  /// One layer, and what it computed in the last forward pass, each rows × its width.
  struct Layer {
    /// Makes a layer with tensors of its own.
    Layer(ParameterLayout& layout, std::string_view name, const SequenceShape& input,
          const TransformerSize& size);
    /// Makes a layer with those of `tied`, but for normalizations.
    Layer(ParameterLayout& layout, std::string_view name, const TransformerSize& size,
          const Layer& tied);

    LayerNorm norm1;
    Attention attention;
    LayerNorm norm2;
    std::optional<DenseLayer> expand;    // A and a, where there are no experts
    std::optional<DenseLayer> contract;  // B and c
    std::optional<ExpertMlp> experts;
    std::vector<float> normalized1;
    std::vector<float> normalized2;
    std::vector<float> expanded;
  };

  /// `values` as a matrix with a row for each position of each sequence.
  MutableMatrixView rows_of(std::vector<float>& values, std::size_t width) const;
  void embed(std::span<const float> parameters);
  /// branch_ = mlp(normalized2).
  void mlp_forward(Layer& layer, std::span<const float> parameters);
  /// branch_ = ∂loss/∂normalized2, from delta_.
  void mlp_backward(Layer& layer, std::span<const float> parameters, std::span<float> blocks);
  /// delta_, from ∂loss/∂h behind the layer to that in front of it, once its mlp has made branch_.
  /// Writes the gradient of its normalizations to `gradient` and that of its attention to `blocks`.
  void leave_mlp_backward(Layer& layer, std::span<const float> parameters,
                          std::span<float> gradient, std::span<float> blocks);
  /// Adds the part of use_ that layer l has in common with others to `gradient`.
  void add_use(std::size_t l, std::span<float> gradient) const;
  void embed_backward(std::span<float> gradient) const;

  SequenceShape input_;
  TransformerSize size_;
  ParameterLayout layout_;
  std::size_t symbol_;    // offset of E
  std::size_t position_;  // offset of p
  std::vector<Layer> layers_;
  LayerNorm norm_;
  DenseLayer head_;
  std::size_t rows_ = 0;           // sequences × positions of the last forward pass
  std::span<const float> x_;       // its rows × symbols
  std::vector<float> state_;       // h
  std::vector<float> branch_;      // what a part adds to h; ∂loss/∂ its input on the way back
  std::vector<float> normalized_;  // norm(h)
  std::vector<float> scores_;
  std::vector<float> delta_;           // ∂loss/∂h
  std::vector<float> expanded_delta_;  // ∂loss/∂ the inside of an mlp
  std::vector<float> use_;             // where layers are tied: the gradient of one use
};

}  // namespace sotto
