// Torch parameters as one flat vector of floats: what sotto's optimizer works on.
//
// A float32 parameter on the CPU is moved into the flat vector: its storage becomes a piece of it,
// and so does that of its gradient. Any other (half precision, float64, another device, elements in
// another order, as of channels_last) is staged: it stays where it is, as it is, and the flat
// vector holds its float32 master copy. Parameters that are frozen (requires_grad is false) as this
// is made are left out; those that are frozen later stay in, and have no gradient meanwhile.
//
// Thread safety: one thread. Ownership: the flat vectors live as long as a parameter that lies in
// them. Errors: what is wrong with a parameter throws Error naming it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <torch/types.h>

#include <sotto/base/parameter_layout.h>
#include <sotto/trainers/torch/distributed_optimizer.h>

namespace sotto::torch {

/// A float32 tensor of this shape with a storage of its own at `data`, which `owner` keeps alive.
/// (It is no view in torch's sense: those can neither be detached in place nor saved alone.)
::torch::Tensor piece_of(const ::torch::Tensor& owner, float* data, at::IntArrayRef shape);

class FlatParameters {
 public:
  /// `names` are of parameters found in it; others are called by their number.
  FlatParameters(const std::vector<::torch::Tensor>& parameters, const NamedParameters& names);

  const ParameterLayout& layout() const { return layout_; }
  /// The parameters in the flat vector, in its order.
  const std::vector<::torch::Tensor>& parameters() const { return parameters_; }
  std::span<float> values() const;
  std::span<const float> gradient() const;
  /// A digest of the frozen parameters' values, in the caller's order.
  std::string frozen_digest() const;

  /// Whether these are the parameters that it was made of, and nothing has written to one since.
  bool holds(const std::vector<::torch::Tensor>& parameters) const;
  /// Throws Error unless all parameters are as they were taken over: the same shapes, in the same
  /// place, those that were left out still frozen.
  void require_unchanged() const;
  /// Numbers of the parameters that are frozen now.
  std::vector<std::size_t> frozen_since() const;
  /// Allows sparse gradients from now on; elements that are not there are 0.
  void take_sparse_gradients() { takes_sparse_ = true; }
  /// Collects the gradients; one that is missing, or of a frozen parameter, counts as 0. Dense
  /// gradients of parameters that lie in the flat vector are moved into the flat gradient.
  void gather_gradients();
  /// Takes one parameter's gradient; returns its place in the flat gradient.
  std::span<const float> gather_gradient(std::size_t index);
  /// Does as a gather that finds no gradient, though it leaves alone those that there are, and
  /// gradient().
  void leave_out_gradients();
  /// Whether the last gather found a gradient, by parameter.
  const std::vector<char>& has_gradient() const { return has_gradient_; }
  /// Moves the parameters (back) into the flat vector; they take its values.
  void attach();
  /// Hands the values to staged parameters, and tells autograd that all have changed.
  void publish() const;

 private:
  std::string_view name(std::size_t index) const { return layout_[index].name; }
  void require_unchanged(std::size_t index) const;

  /// The marks of a parameter by which a change since it was taken over shows.
  struct Taken {
    ::torch::Tensor parameter;
    const void* place = nullptr;
    std::int64_t version = 0;
  };
  Taken taken(const ::torch::Tensor& parameter) const;
  /// Whether the float32 copies of staged parameters have the values that those have.
  bool copies_hold() const;
  struct Frozen {
    std::string name;
    ::torch::Tensor parameter;
  };

  ParameterLayout layout_;
  std::vector<Taken> all_;  // the caller's
  std::vector<::torch::Tensor> parameters_;
  std::vector<Frozen> frozen_;
  bool takes_sparse_ = false;
  std::vector<char> staged_;
  std::vector<const void*> places_;  // places of staged parameters
  std::vector<char> has_gradient_;
  ::torch::Tensor values_;
  ::torch::Tensor gradient_;
};

}  // namespace sotto::torch
