// A model as strategies see it: classes of equal blocks, and how many rows pass through them.
//
// Tensors whose names agree up to their first number, and with it, are a block: of a transformer
// "h.3.…", of a network of dense layers "layer2.…". Blocks with the same tensors in the same shapes
// are one class, and are priced once however many there are, as TAP has it (Shi et al. 2023,
// "TAP: Accelerating Large-Scale DNN Training Through Tensor Automatic Parallelisation",
// arXiv:2302.00247). Plain values and pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sotto/base/parameter_layout.h>
#include <sotto/study/train/train_plan.h>

namespace sotto::study {

/// A product of rows with a matrix.
struct ProductSize {
  std::size_t inputs = 0;
  std::size_t outputs = 0;

  bool operator==(const ProductSize&) const = default;
};

/// Blocks of a model that are alike.
struct BlockClass {
  std::string name;            ///< "h.#", or a name without a number, which one block has
  std::size_t blocks = 1;      ///< number of blocks, L
  std::size_t parameters = 0;  ///< floats of one block
  /// Products of a block, in their order, without those of experts. None where a name has no
  /// number, or where a tensor is no matrix, as in a convolution.
  std::vector<ProductSize> products = {};
  std::size_t experts = 0;            ///< experts of a block, E
  std::size_t expert_parameters = 0;  ///< floats of all experts of a block
  std::size_t expert_matrices = 0;    ///< floats of them that are in matrices
  bool attention = false;             ///< a block has attention among the positions of a sequence

  /// Elements of a row in front of a block; 0: unknown.
  std::size_t width() const { return products.empty() ? 0 : products.front().inputs; }
};

/// The model of a job.
struct ModelShape {
  std::vector<BlockClass> classes;  ///< in the order of their first blocks
  std::vector<std::size_t> order;   ///< class of each block, in the order of the layout
  std::size_t parameters = 0;       ///< floats of the model
  std::size_t examples = 1;         ///< examples of a node and step
  std::size_t positions = 1;        ///< rows of an example, which attention lets see each other
  std::size_t activations = 0;      ///< floats that a model keeps for a node's examples
  std::size_t state = 0;            ///< floats a parameter that the step rule keeps
  std::string tied;                 ///< specification with tied blocks; "": there is none
  std::size_t tied_parameters = 0;  ///< floats of that model

  /// Rows of a node and step.
  std::size_t rows() const { return examples * positions; }
};

/// Sorts the tensors of a layout into classes; figures besides these are left as they are by
/// default.
ModelShape classes_of(const ParameterLayout& layout);

/// The model, batch and step rule of a job.
ModelShape shape_of(const TrainPlan& plan);

}  // namespace sotto::study
