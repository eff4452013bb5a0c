// A model's buffers that belong to what is evaluated and saved: running statistics of BatchNorm and
// the like. No step moves them; they are averaged with the model.
//
// Buffers of floating-point numbers are carried. Others, as the count of batches, stay a node's
// own.
//
// Thread safety: one thread. Ownership: shares the tensors' memory with the model; allocates only
// in the constructor and where a buffer is no float32 in one piece.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <torch/ordered_dict.h>
#include <torch/types.h>

namespace sotto::torch {

class Buffers {
 public:
  /// Carries nothing.
  Buffers() = default;
  explicit Buffers(const ::torch::OrderedDict<std::string, ::torch::Tensor>& buffers);

  /// The carried numbers, one behind the other, as gather() has found them.
  std::span<float> values() { return values_; }
  std::span<const float> values() const { return values_; }
  bool empty() const { return tensors_.empty(); }

  /// Reads the tensors into values().
  void gather();
  /// Writes numbers into the tensors; `values` is as long as values().
  void scatter(std::span<const float> values) const;

  /// All buffers, whatever their type, for an archive.
  const std::vector<::torch::Tensor>& all() const { return tensors_; }

 private:
  std::vector<::torch::Tensor> tensors_;  // all
  std::vector<float> values_;
};

}  // namespace sotto::torch
