// A node's whole model, of which others take the mean: the parameters, and the caller's values that
// go along with them. One thread at a time; whatever it is given must outlive it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/compress/accelerator.h>
#include <sotto/kernels/ops.h>
#include <sotto/kernels/vector.h>

namespace sotto::internal {

class WholeModel {
 public:
  /// `accelerator`: where the parameters lie; null: with the host.
  WholeModel(std::span<float> parameters, Accelerator* accelerator)
      : parameters_(parameters), accelerator_(accelerator) {}

  /// The parameters, where they lie.
  std::span<float> parameters() const { return parameters_; }
  /// Takes along values that lie with the host, behind the parameters.
  void carry(std::span<const float> values) { carried_ = values; }
  std::size_t carried() const { return carried_.size(); }
  /// Throws Error unless `mean` is empty or as long as all of it.
  void require_length(std::span<const float> mean) const;

  /// The vector operations for the memory of the parameters.
  const Ops& ops() const;
  /// A vector of zeros, as long as the parameters and in their memory.
  Vector zeros() const;
  /// OK without an accelerator.
  Status accelerator_status() const;
  /// The parameters as they are with the host, in `room` where they lie elsewhere.
  Result<std::span<const float>> parameters_on_host(std::vector<float>& room) const;
  /// Digest of the parameters.
  Result<std::string> digest() const;
  /// All of it with the host, in `room` unless it lies there as it is.
  Result<std::span<const float>> on_host(std::vector<float>& room) const;

 private:
  const std::span<float> parameters_;
  Accelerator* const accelerator_;
  std::span<const float> carried_;
};

}  // namespace sotto::internal
