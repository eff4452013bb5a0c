// A trained model in fewer bits, tensor by tensor, at a bounded loss.
//
// The loss at x + ε, ε the error that an encoding makes of tensor i alone, is predicted by the
// gradients at both ends, L(x + ε) − L(x) ≈ ½ ⟨∇_i L(x) + ∇_i L(x + ε), ε⟩, which is exact where L
// is quadratic. A knapsack (compress/bit_allocation.h) takes the encodings with the fewest bytes
// whose changes sum up to the budget. The first-order part has a sign: an encoding can lower the
// loss. What errors of two tensors do together is left out; so the model is measured, and the
// budget of the prediction lowered until that holds. Each encoding alone is measured too; of all
// that keep the budget the one with the fewest bytes is taken.
//
// Time: the gradients of `batches` for 8 encodings of each tensor, and up to 21 evaluations.
// Memory: about 8 models.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/trainers/files/model_file.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto::study {

/// How a model is quantized.
struct QuantizationOptions {
  /// How much the loss on the test set may rise; 0: not at all.
  double loss_budget = 0;
  Round batches = 8;                  ///< batches of training data for the gradients that predict
  std::size_t least_elements = 1024;  ///< tensors with fewer elements stay as they are
  std::function<void(double done)> progress = {};  ///< receives the completed part, 0 … 1
  std::function<bool()> stop = {};                 ///< polled during the work: true ends it early
};

/// What became of one tensor.
struct QuantizedTensor {
  std::string name;
  std::size_t elements = 0;
  std::string encoding;  ///< the tensor's compressor; empty: 32-bit floats
  std::size_t bytes = 0;
  double loss_change = 0;  ///< predicted change of the loss
};

/// The model with one encoding for all tensors that may have one, to compare with.
struct UniformEncoding {
  std::string encoding;
  std::size_t bytes = 0;
  double loss = 0;  ///< loss on the test set
};

/// A model in fewer bits, and how its loss changed.
struct QuantizedModel {
  std::vector<QuantizedTensor> tensors;
  std::vector<float> parameters;  ///< the parameters as a reader of the file gets them
  Evaluation before;
  Evaluation after;
  double predicted = 0;  ///< predicted change of the loss, on training data
  int measured = 0;  ///< choices that were measured on the test set, the unchanged model among them
  std::vector<UniformEncoding> uniform;
  bool stopped = false;  ///< the work was stopped, and nothing else is filled in

  /// The sum over all tensors.
  std::size_t bytes() const;
  /// The encodings of the tensors that have one, for encode_model_file.
  TensorEncodings encodings() const;
};

/// Chooses encodings for the parameters of a model of this task. Throws Error (field `loss_budget`)
/// where none keeps the budget, which is below 0 then.
QuantizedModel quantize_model(Task& task, std::span<const float> parameters,
                              const QuantizationOptions& options);

}  // namespace sotto::study
