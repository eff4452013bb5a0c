#include "flat_parameters.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/utils.h>

#include <sotto/base/digest.h>
#include <sotto/base/error.h>

namespace sotto::torch {
namespace {

std::string shape_text(at::IntArrayRef shape) { return fmt::format("{}", fmt::join(shape, "x")); }

/// The names of `names`, and numbers for what it does not name.
std::vector<std::string> names_of(const std::vector<::torch::Tensor>& parameters,
                                  const NamedParameters& names) {
  std::map<const at::TensorImpl*, std::string> known;
  for (const auto& item : names) {
    known.emplace(item.value().unsafeGetTensorImpl(), item.key());
  }
  std::vector<std::string> all;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto found = known.find(parameters[i].unsafeGetTensorImpl());
    all.push_back(found == known.end() ? fmt::to_string(i) : found->second);
  }
  return all;
}

void require_usable(const ::torch::Tensor& parameter, const std::string& name) {
  if (parameter.layout() != ::torch::kStrided) {
    refuse(fmt::format("parameter {}", name), "not dense", "sotto trains dense parameters");
  }
  const auto type = parameter.scalar_type();
  if (type != ::torch::kFloat && type != ::torch::kDouble && type != ::torch::kHalf &&
      type != ::torch::kBFloat16) {
    refuse(fmt::format("parameter {}", name), c10::toString(type),
           "sotto trains float32, and float64 and half precision with a float32 copy: convert the "
           "model with model->to(torch::kFloat), or freeze this one (set_requires_grad(false))");
  }
  if (!parameter.is_leaf()) {
    refuse(fmt::format("parameter {}", name), "not a leaf", "torch cannot optimize it either");
  }
  if (!parameter.device().is_cpu() && !parameter.device().is_cuda()) {
    refuse(fmt::format("parameter {}", name), parameter.device().str(),
           "sotto trains parameters of the CPU, and of CUDA through copies");
  }
  if (at::has_internal_overlap(parameter) == at::MemOverlap::Yes) {
    refuse(fmt::format("parameter {}", name), "expanded",
           "some of its elements share their memory: give a clone()");
  }
}

const void* place_of(const ::torch::Tensor& parameter) {
  const bool has_place = parameter.layout() == ::torch::kStrided && !parameter.device().is_meta();
  return has_place ? parameter.data_ptr() : nullptr;
}

/// Such a parameter can be a piece of the flat vector.
bool fits_flat(const ::torch::Tensor& parameter) {
  return parameter.device().is_cpu() && parameter.scalar_type() == ::torch::kFloat &&
         parameter.is_contiguous();
}

/// The ends and names of parameters, by the address where they begin.
using Extents = std::map<const char*, std::pair<const char*, std::string>>;

/// A flat vector would part what overlaps. What is not contiguous may lie between others' elements.
void require_apart(const ::torch::Tensor& parameter, const std::string& name, Extents& extents) {
  if (parameter.numel() == 0 || parameter.device().is_meta() || !parameter.is_contiguous()) {
    return;
  }
  const auto* const begin = static_cast<const char*>(parameter.data_ptr());
  const auto* const end = begin + parameter.nbytes();
  const auto refuse_with = [&](const std::string& other) {
    refuse(fmt::format("parameter {}", name), fmt::format("overlaps parameter {}", other),
           "give the tensor that both are views of");
  };
  const auto next = extents.lower_bound(begin);
  if (next != extents.end() && next->first < end) {
    refuse_with(next->second.second);
  }
  if (next != extents.begin() && std::prev(next)->second.first > begin) {
    refuse_with(std::prev(next)->second.second);
  }
  extents.emplace(begin, std::pair(end, name));
}

::torch::Tensor zeros(std::size_t length) {
  return ::torch::zeros({static_cast<std::int64_t>(length)}, ::torch::kFloat);
}

}  // namespace

::torch::Tensor piece_of(const ::torch::Tensor& owner, float* data, at::IntArrayRef shape) {
  return ::torch::from_blob(
      data, shape, [owner](void* /*data*/) {}, ::torch::kFloat);
}

FlatParameters::FlatParameters(const std::vector<::torch::Tensor>& parameters,
                               const NamedParameters& names) {
  const auto name = names_of(parameters, names);
  std::set<const at::TensorImpl*> seen;
  std::map<const void*, std::string> places;
  Extents extents;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const ::torch::Tensor& parameter = parameters[i];
    if (!parameter.defined()) {
      refuse(fmt::format("parameter {}", name[i]), "undefined", "leave it out");
    }
    const bool again = !seen.insert(parameter.unsafeGetTensorImpl()).second;
    const bool first = parameter.numel() == 0 || parameter.device().is_meta() ||
                       parameter.layout() != ::torch::kStrided ||
                       places.emplace(parameter.data_ptr(), name[i]).second;
    if (again || !first) {
      refuse(
          fmt::format("parameter {}", name[i]), "given twice",
          "what is shared by two layers is to be given once, or torch's optimizers step it twice");
    }
    if (!parameter.requires_grad()) {
      frozen_.push_back({name[i], parameter});
      continue;
    }
    require_usable(parameter, name[i]);
    append_block(layout_, name[i], {parameter.sizes().begin(), parameter.sizes().end()});
    require_apart(parameter, name[i], extents);
    parameters_.push_back(parameter);
    staged_.push_back(!fits_flat(parameter));
    places_.push_back(place_of(parameter));
  }
  if (parameters_.empty()) {
    refuse("parameters", parameters.empty() ? "none given" : "all frozen",
           "give those that are to be trained, e.g. model->parameters()");
  }
  has_gradient_.assign(parameters_.size(), 0);
  values_ = zeros(dimension_of(layout_));
  gradient_ = zeros(dimension_of(layout_));
  const ::torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    piece_of(values_, layout_[i].of(values()).data(), parameters_[i].sizes()).copy_(parameters_[i]);
  }
  attach();
  std::ranges::transform(parameters, std::back_inserter(all_),
                         [&](const auto& parameter) { return taken(parameter); });
}

FlatParameters::Taken FlatParameters::taken(const ::torch::Tensor& parameter) const {
  return {parameter, place_of(parameter), parameter._version()};
}

bool FlatParameters::holds(const std::vector<::torch::Tensor>& parameters) const {
  const auto is_as_taken = [&](const ::torch::Tensor& now, const Taken& then) {
    return now.is_same(then.parameter) && place_of(now) == then.place &&
           now._version() == then.version;
  };
  return std::ranges::equal(parameters, all_, is_as_taken) &&
         std::ranges::all_of(parameters_, &::torch::Tensor::requires_grad) &&
         std::ranges::none_of(frozen_,
                              [](const Frozen& one) { return one.parameter.requires_grad(); }) &&
         copies_hold();
}

bool FlatParameters::copies_hold() const {
  const ::torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    // A write through data() leaves no trace but the values.
    if (staged_[i] != 0) {
      float* const place = layout_[i].of(values()).data();
      const auto now = parameters_[i].detach().to(::torch::kCPU, ::torch::kFloat);
      if (!now.equal(piece_of(values_, place, now.sizes()))) {
        return false;
      }
    }
  }
  return true;
}

std::vector<std::size_t> FlatParameters::frozen_since() const {
  std::vector<std::size_t> frozen;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].requires_grad()) {
      frozen.push_back(i);
    }
  }
  return frozen;
}

std::span<float> FlatParameters::values() const {
  return {values_.data_ptr<float>(), dimension_of(layout_)};
}

std::span<const float> FlatParameters::gradient() const {
  return {gradient_.data_ptr<float>(), dimension_of(layout_)};
}

std::string FlatParameters::frozen_digest() const {
  Sha256 digest;
  for (const auto& [name, parameter] : frozen_) {
    const bool strided = parameter.layout() == ::torch::kStrided;
    const auto values = strided ? parameter.detach() : parameter.detach().to_dense();
    const auto dense = values.to(::torch::kCPU).contiguous();
    digest.update(
        std::as_bytes(std::span(static_cast<const char*>(dense.data_ptr()), dense.nbytes())));
  }
  return digest.finish_hex().substr(0, 16);
}

void FlatParameters::require_unchanged() const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    require_unchanged(i);
  }
  for (const auto& [name, parameter] : frozen_) {
    if (parameter.requires_grad()) {
      throw Error(fmt::format(
          "parameter {} of shape {} was frozen when the nodes met and requires a gradient now, but "
          "is not trained: freeze layers that are to be unfrozen later after the first "
          "zero_grad(), or make a new optimizer",
          name, shape_text(parameter.sizes())));
    }
  }
}

void FlatParameters::require_unchanged(std::size_t index) const {
  const ::torch::Tensor& parameter = parameters_[index];
  const ParameterBlock& block = layout_[index];
  const auto& shape = block.shape;
  const std::vector<std::size_t> now(parameter.sizes().begin(), parameter.sizes().end());
  if (now != shape) {
    throw Error(fmt::format(
        "parameter {} had the shape {} when the optimizer was made and has {} now: make a new "
        "optimizer where shapes change",
        block.name, fmt::join(shape, "x"), fmt::join(now, "x")));
  }
  const void* const place = staged_[index] == 0 ? block.of(values()).data() : places_[index];
  const bool in_place = (staged_[index] != 0 || fits_flat(parameter)) &&
                        (parameter.numel() == 0 || parameter.data_ptr() == place);
  if (!in_place) {
    throw Error(fmt::format(
        "the storage of parameter {} was replaced after the nodes had met, so that steps do not "
        "reach it: load or convert the model before the first step, and load the model before the "
        "optimizer's state",
        block.name));
  }
}

void FlatParameters::gather_gradients() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    gather_gradient(i);
  }
}

void FlatParameters::leave_out_gradients() { std::ranges::fill(has_gradient_, 0); }

std::span<const float> FlatParameters::gather_gradient(std::size_t index) {
  const ::torch::NoGradGuard no_grad;
  ::torch::Tensor& gradient = parameters_[index].mutable_grad();
  float* const data = gradient_.data_ptr<float>() + layout_[index].offset;
  has_gradient_[index] = gradient.defined() && parameters_[index].requires_grad();
  const ::torch::Tensor piece = piece_of(gradient_, data, parameters_[index].sizes());
  const std::span<const float> place = layout_[index].of(this->gradient());
  if (has_gradient_[index] == 0) {
    piece.zero_();
    return place;
  }
  if (gradient.layout() != ::torch::kStrided) {
    if (!takes_sparse_) {
      throw Error(fmt::format(
          "the gradient of parameter {} is sparse, which this torch optimizer does not take: use "
          "SGD or Adagrad, or leave out the option sparse of the embedding",
          name(index)));
    }
    piece.copy_(gradient.to_dense());
    return place;
  }
  const bool in_place = gradient.scalar_type() == ::torch::kFloat && gradient.is_contiguous() &&
                        gradient.device().is_cpu() && gradient.data_ptr<float>() == data;
  if (!in_place) {
    piece.copy_(gradient);
    if (staged_[index] == 0) {
      gradient = piece;
    }
  }
  return place;
}

void FlatParameters::attach() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (staged_[i] == 0) {
      const std::vector<std::int64_t> shape(layout_[i].shape.begin(), layout_[i].shape.end());
      parameters_[i].set_data(piece_of(values_, layout_[i].of(values()).data(), shape));
    }
  }
}

void FlatParameters::publish() const {
  const ::torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (staged_[i] != 0) {
      ::torch::Tensor parameter = parameters_[i];
      parameter.copy_(piece_of(values_, layout_[i].of(values()).data(), parameter.sizes()));
    } else {
      parameters_[i].unsafeGetTensorImpl()->bump_version();
    }
  }
}

}  // namespace sotto::torch
