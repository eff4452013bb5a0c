#include <sotto/sites/torch/trained_model.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include <sotto/base/xxh3.h>

namespace sotto::torch {
namespace {

std::vector<::torch::Tensor> tensors_of(const NamedParameters& named) {
  std::vector<::torch::Tensor> tensors;
  tensors.reserve(named.size());
  for (const auto& one : named) {
    tensors.push_back(one.value());
  }
  return tensors;
}

std::unique_ptr<::torch::optim::Optimizer> one_that_steps(
    std::unique_ptr<::torch::optim::Optimizer> local) {
  require_steps(local.get());
  return local;
}

}  // namespace

TrainedModel::TrainedModel(const NamedParameters& named) : flat_(tensors_of(named), named) {}

TrainedModel::TrainedModel(std::unique_ptr<::torch::optim::Optimizer> local,
                           const NamedParameters& names)
    : local_(one_that_steps(std::move(local))),
      groups_(std::exchange(local_->param_groups(), {})),
      states_(std::exchange(local_->state(), {})),
      flat_(parameters_in(groups_), names) {
  to_float32(states_);
  if (takes_sparse_gradients(*local_)) {
    flat_.take_sparse_gradients();
  }
}

std::uint64_t TrainedModel::settings_of(Round step) const {
  if (!schedule_) {
    return 0;
  }
  ParameterGroups groups = groups_;
  try {
    schedule_(step, groups);
  } catch (const std::exception&) {
    return 0;  // the step itself tells it
  }
  const std::string text = settings_text(optimizer_settings(*local_, groups));
  return xxh3(std::as_bytes(std::span(text)));
}

std::span<const float> TrainedModel::gather_gradients() {
  flat_.require_unchanged();
  flat_.gather_gradients();
  return flat_.gradient();
}

void TrainedModel::zero_grad() {
  for (const ::torch::Tensor& parameter : flat_.parameters()) {
    parameter.mutable_grad() = ::torch::Tensor();
  }
}

}  // namespace sotto::torch
