// Models: the scores of an example's classes, at one or each position of it, or numbers to be
// predicted of it, as a function of one flat parameter vector.
//
// A model keeps no parameters: they are the caller's, so that an optimizer may mix and compress
// them as one vector. It keeps the activations of its last forward pass. Thread safety: one thread
// at a time. Its buffers are allocated by the first pass with the largest number of rows; later
// ones take at most temporary blocks for the matrix products. Results depend on the arguments
// alone, neither on threads nor on where the arguments lie in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <sotto/trainers/data/dataset.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto {

class Transformer;

class Model {
 public:
  virtual ~Model() = default;

  /// The tensors that the parameters consist of, in order.
  virtual const ParameterLayout& layout() const = 0;
  /// Writes initial parameters; the same bits on every machine for the same seed.
  virtual void initialize(std::span<float> parameters, std::uint64_t seed) const = 0;
  /// The number of predictions for an example: 1, or the positions of a sequence.
  virtual std::size_t positions() const { return 1; }
  /// About how many floats it keeps for each example of a pass, besides the features.
  virtual std::size_t activations() const = 0;
  /// The class scores (before the softmax) of `rows` examples, rows × positions × classes, or for a
  /// regression what is predicted, rows × targets; row-major, valid until the next call. `x` is
  /// rows × features, row-major, and must stay untouched until backward.
  virtual std::span<const float> forward(std::span<const float> parameters,
                                         std::span<const float> x, std::size_t rows) = 0;
  /// Given ∂loss/∂scores of the last forward pass (in the shape of the scores), at the same
  /// parameters, writes ∂loss/∂parameters.
  virtual void backward(std::span<const float> parameters, std::span<const float> score_gradient,
                        std::span<float> gradient) = 0;
  /// The model as one whose passes stop at layers of experts, which may lie elsewhere
  /// (experts_at_nodes.h); null: it has none.
  virtual Transformer* with_experts() { return nullptr; }
};

/// The inputs and outputs of a model.
struct ModelInput {
  std::size_t features = 0;
  std::size_t classes = 0;
  std::optional<ImageShape> image{};
  std::optional<SequenceShape> sequence{};
  std::size_t targets = 0;  ///< numbers to be predicted in place of classes: a regression

  /// The number of outputs for an example, or for each position of a sequence.
  std::size_t outputs() const { return targets > 0 ? targets : classes; }
};

/// One kind of model, as `sotto list` shows it.
struct ModelInfo {
  std::string_view name;      ///< the model's name, "mlp"
  std::string_view synopsis;  ///< form of its specification, "mlp:H1[,H2…]"
  std::string_view summary;   ///< one sentence
  std::string_view example;   ///< a specification that builds
};

/// All kinds, in a fixed order.
std::span<const ModelInfo> models();

/// Builds the model that `spec` names. Throws Error for an unknown name, a width out of range, a
/// model above kMostDimension parameters, a `softmax` for a regression, a `cnn` without images, or
/// a `transformer` without text, with heads that do not divide its width, or with a `share` that
/// does not divide its layers or beside `experts`.
///
/// softmax   scores = W x + b (multinomial logistic regression; convex)
/// linear    y = W x + b: least squares for a regression, softmax for classes
/// mlp:H1,…  fully connected layers of H1, … units with ReLU between them
/// cnn[:C1,C2]  5×5 convolution to C1 = 8 channels, ReLU, 2×2 maximum; 3×3 convolution to C2 = 16
///           channels, ReLU, 2×2 maximum; a fully connected layer. Convolutions keep the size.
/// transformer[:LAYERS,WIDTH,HEADS[,share=N|,experts=E[,balance=L]]]  causal, in the form of GPT-2
///           with ReLU; 2 layers, width 64 and 4 heads by default. It predicts the symbol behind
///           every position (models/transformer.h). Each N layers that follow each other have their
///           weights in common, but for normalizations; N divides LAYERS. Or each layer has E mlps,
///           2 to 256, of which a position goes to one, and a balance loss of weight L
///           (models/expert_mlp.h).
///
/// Weights are stored as torch.nn does: [out, in] and [out, in, height, width]. They start uniform
/// in ±√(6/in) before a ReLU (He et al. 2015, arXiv:1502.01852) and ±√(6/(in + out)) in the last
/// layer (Glorot and Bengio 2010), those of the transformer with GPT-2's deviations; biases start
/// at 0.
std::unique_ptr<Model> make_model(std::string_view spec, const ModelInput& input);

}  // namespace sotto
