// A task: a model and its data, as one node sees them.
//
// Thread safety: a Task object belongs to one node (one thread). The data behind it
// (trainers/dataset.h) is immutable and shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/ids.h>

namespace sotto {

/// One tensor inside the flat parameter vector.
struct ParameterBlock {
  std::string name;                ///< "layer1.weight"
  std::vector<std::size_t> shape;  ///< row-major
  std::size_t offset = 0;          ///< in floats
  std::size_t size = 0;            ///< product of shape
};
using ParameterLayout = std::vector<ParameterBlock>;

/// Appends a block behind the last one and returns its offset. Throws Error when the layout grows
/// beyond kMaxDimension floats, so that a product of shapes never wraps.
std::size_t append_block(ParameterLayout& layout, std::string name, std::vector<std::size_t> shape);

/// The largest model that a layout may describe: 2^30 floats, 4 GiB.
inline constexpr std::size_t kMaxDimension = std::size_t{1} << 30;

struct Evaluation {
  double loss = 0;
  double accuracy = 0;  ///< fraction in 0 … 1; NaN where the task has none
};

class Task {
 public:
  virtual ~Task() = default;

  virtual const ParameterLayout& layout() const = 0;
  std::size_t dimension() const {
    const auto& blocks = layout();
    return blocks.empty() ? 0 : blocks.back().offset + blocks.back().size;
  }
  /// Writes the initial parameters: the same on every node for the same seed.
  virtual void initialize(std::span<float> parameters, std::uint64_t seed) const = 0;
  /// Rounds that make one epoch over all nodes' data.
  virtual Round rounds_per_epoch() const = 0;
  /// Loss and gradient on this node's batch of `round` (a function of round and seed alone, so that
  /// a resumed run sees the same data). Returns the mean loss.
  virtual double loss_and_gradient(Round round, std::span<const float> parameters,
                                   std::span<float> gradient) = 0;
  /// Loss and accuracy on the test set (for tasks without one: the global objective).
  virtual Evaluation evaluate(std::span<const float> parameters) = 0;
};

}  // namespace sotto
