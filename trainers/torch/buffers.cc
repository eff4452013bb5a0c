#include "buffers.h"

#include <algorithm>

#include <torch/utils.h>

namespace sotto::torch {
namespace {

bool is_carried(const ::torch::Tensor& tensor) { return tensor.is_floating_point(); }

/// The numbers of a tensor in float32 on the host, in the order of its elements.
::torch::Tensor on_host(const ::torch::Tensor& tensor) {
  return tensor.detach().to(::torch::kCPU, ::torch::kFloat).contiguous();
}

}  // namespace

Buffers::Buffers(const ::torch::OrderedDict<std::string, ::torch::Tensor>& buffers)
    : tensors_(buffers.values()) {
  std::size_t count = 0;
  for (const ::torch::Tensor& tensor : tensors_) {
    count += is_carried(tensor) ? static_cast<std::size_t>(tensor.numel()) : 0;
  }
  values_.resize(count);
  gather();
}

void Buffers::gather() {
  auto next = values_.begin();
  for (const ::torch::Tensor& tensor : tensors_) {
    if (is_carried(tensor)) {
      const auto flat = on_host(tensor);
      next = std::copy_n(flat.data_ptr<float>(), flat.numel(), next);
    }
  }
}

void Buffers::scatter(std::span<const float> values) const {
  const ::torch::NoGradGuard no_gradients;
  auto rest = values;
  for (const ::torch::Tensor& tensor : tensors_) {
    if (is_carried(tensor)) {
      auto numbers = ::torch::empty(tensor.sizes(), ::torch::kFloat);
      std::copy_n(rest.begin(), numbers.numel(), numbers.data_ptr<float>());
      ::torch::Tensor(tensor).copy_(numbers);
      rest = rest.subspan(static_cast<std::size_t>(numbers.numel()));
    }
  }
}

}  // namespace sotto::torch
