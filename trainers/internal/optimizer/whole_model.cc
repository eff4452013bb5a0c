#include "whole_model.h"

#include <fmt/format.h>

#include <sotto/base/digest.h>
#include <sotto/base/error.h>

namespace sotto::internal {

void WholeModel::require_length(std::span<const float> mean) const {
  if (!mean.empty() && mean.size() != parameters_.size() + carried_.size()) {
    refuse("mean", fmt::format("{} elements", mean.size()),
           fmt::format(
               "the parameters have {}{}", parameters_.size(),
               carried_.empty() ? "" : fmt::format(", and {} values go along", carried_.size())));
  }
}

const Ops& WholeModel::ops() const {
  return accelerator_ != nullptr ? accelerator_->ops() : host_ops();
}

Vector WholeModel::zeros() const {
  const AcceleratorScope scope(accelerator_);
  return {parameters_.size(), ops()};
}

Status WholeModel::accelerator_status() const {
  return accelerator_ != nullptr ? accelerator_->status() : Status();
}

Result<std::span<const float>> WholeModel::parameters_on_host(std::vector<float>& room) const {
  const AcceleratorScope scope(accelerator_);
  const std::span<const float> values = sotto::on_host(parameters_, ops(), room);
  const Status status = accelerator_status();
  return status.ok() ? Result<std::span<const float>>(values) : status;
}

Result<std::string> WholeModel::digest() const {
  std::vector<float> room;
  const auto values = parameters_on_host(room);
  return values.ok() ? sha256_hex(std::as_bytes(*values)) : Result<std::string>(values.status());
}

Result<std::span<const float>> WholeModel::on_host(std::vector<float>& room) const {
  auto values = parameters_on_host(room);
  if (!values.ok() || carried_.empty()) {
    return values;
  }
  if (room.empty()) {
    room.assign(values->begin(), values->end());
  }
  room.insert(room.end(), carried_.begin(), carried_.end());
  return std::span<const float>(room);
}

}  // namespace sotto::internal
