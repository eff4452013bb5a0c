#include "local_optimizer.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <torch/serialize/archive.h>

#include <sotto/base/error.h>
#include <sotto/kernels/ops.h>
#include <sotto/optim/state_io.h>
#include <sotto/optim/step_rules/finite_direction.h>

namespace sotto::torch {
namespace {

::torch::serialize::InputArchive archive_of(std::span<const std::byte> bytes) {
  ::torch::serialize::InputArchive archive;
  archive.load_from(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return archive;
}

/// A tensor on somebody else's memory.
::torch::Tensor lent(float* data, at::IntArrayRef shape) {
  return ::torch::from_blob(data, shape, ::torch::kFloat);
}

/// Moves what is known of a parameter, if anything is.
void move_state(ParameterStates& from, const StateKey& old_key, ParameterStates& to,
                const StateKey& new_key) {
  if (const auto found = from.find(old_key); found != from.end()) {
    to[new_key] = std::move(found->second);
    from.erase(found);
  }
}

}  // namespace

/// The caller's groups, with some of the optimizer's own tensors in them, and what is known of
/// these, in the optimizer while it lives.
class LocalOptimizer::Lent {
 public:
  Lent(const LocalOptimizer& rule, const Tensors& tensors) : rule_(rule), tensors_(tensors) {
    std::swap(*rule.groups_, groups());
    for (std::size_t g = 0; g < rule.own_.size(); ++g) {
      callers_.push_back(std::move(groups()[g].params()));
      auto& own = groups()[g].params();
      own.clear();
      for (const std::size_t i : rule.own_[g]) {
        if (i >= tensors.begin && i < tensors.end) {
          own.push_back(rule.parameters_[i]);
        }
      }
    }
    for (std::size_t i = tensors.begin; i < tensors.end; ++i) {
      move_state(*rule.states_, rule.callers_keys_[i], states(), rule.own_keys_[i]);
    }
  }
  ~Lent() {
    for (std::size_t i = tensors_.begin; i < tensors_.end; ++i) {
      move_state(states(), rule_.own_keys_[i], *rule_.states_, rule_.callers_keys_[i]);
    }
    for (std::size_t g = 0; g < callers_.size(); ++g) {
      groups()[g].params() = std::move(callers_[g]);
    }
    std::swap(*rule_.groups_, groups());
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

 private:
  ParameterGroups& groups() const { return rule_.optimizer_.param_groups(); }
  ParameterStates& states() const { return rule_.optimizer_.state(); }

  const LocalOptimizer& rule_;
  Tensors tensors_;
  std::vector<std::vector<::torch::Tensor>> callers_;
};

LocalOptimizer::LocalOptimizer(::torch::optim::Optimizer& optimizer, ParameterGroups& groups,
                               ParameterStates& states, const FlatParameters& flat)
    : optimizer_(optimizer),
      groups_(&groups),
      states_(&states),
      flat_(flat),
      separable_(steps_by_tensor(optimizer)) {
  std::map<const at::TensorImpl*, std::size_t> index;
  for (std::size_t i = 0; i < flat.parameters().size(); ++i) {
    const ::torch::Tensor& parameter = flat.parameters()[i];
    parameters_.push_back(::torch::empty(parameter.sizes(), ::torch::kFloat));
    index.emplace(parameter.unsafeGetTensorImpl(), i);
    callers_keys_.push_back(state_key(parameter));
    own_keys_.push_back(state_key(parameters_.back()));
  }
  for (const auto& group : groups) {
    auto& own = own_.emplace_back();
    for (const ::torch::Tensor& parameter : group.params()) {
      if (const auto found = index.find(parameter.unsafeGetTensorImpl()); found != index.end()) {
        own.push_back(found->second);
      }
    }
  }
}

void LocalOptimizer::follow(ParameterGroups& groups, ParameterStates& states) {
  groups_ = &groups;
  states_ = &states;
}

void LocalOptimizer::resize(const ParameterLayout& layout) {
  check(dimension_of(layout) == flat_.values().size(), "the layout is that of the flat parameters");
}

Status LocalOptimizer::with_groups(const Tensors& tensors,
                                   const std::function<void()>& work) const {
  try {
    const Lent lent(*this, tensors);
    work();
  } catch (const std::exception& exception) {
    return {Fault::unexpected, fmt::format("the torch optimizer: {}", first_line(exception))};
  }
  return {};
}

LocalOptimizer::Tensors LocalOptimizer::tensors_of(std::size_t first, std::size_t elements) const {
  const auto& layout = flat_.layout();
  const auto at = [&](std::size_t offset) {
    const auto place = std::ranges::lower_bound(layout, offset, {}, &ParameterBlock::offset);
    return static_cast<std::size_t>(place - layout.begin());
  };
  const Tensors tensors{at(first), at(first + elements)};
  const bool begins = tensors.begin < layout.size() && layout[tensors.begin].offset == first;
  check(begins && (tensors.end == layout.size() || layout[tensors.end].offset == first + elements),
        "a part of a gradient is one of whole tensors");
  return tensors;
}

Status LocalOptimizer::step(const Tensors& tensors, std::span<const float> x,
                            std::span<const float> gradient, std::span<float> next) {
  // Torch's own optimizers only read gradients, and parameters in steps alone; of others nobody
  // knows.
  std::span<float> shown(const_cast<float*>(gradient.data()), gradient.size());
  if (!separable_) {
    copy_.assign(gradient.begin(), gradient.end());
    shown = copy_;
  }
  std::span<float> model = next;
  if (!separable_ || next.data() == gradient.data()) {
    model_.resize(next.size());
    model = model_;
  }
  if (model.data() != x.data()) {
    host_ops().copy(x, model);
  }
  const std::size_t first = flat_.layout()[tensors.begin].offset;
  for (std::size_t i = tensors.begin; i < tensors.end; ++i) {
    const std::size_t at = flat_.layout()[i].offset - first;
    const bool missing =
        (skip_ && flat_.has_gradient()[i] == 0) || !flat_.parameters()[i].requires_grad();
    parameters_[i].set_data(lent(model.data() + at, parameters_[i].sizes()));
    parameters_[i].mutable_grad() =
        missing ? ::torch::Tensor() : lent(shown.data() + at, parameters_[i].sizes());
  }
  const Status status = with_groups(tensors, [&] { optimizer_.step(); });
  for (std::size_t i = tensors.begin; i < tensors.end; ++i) {
    parameters_[i].mutable_grad() = ::torch::Tensor();
  }
  if (status.ok() && model.data() != next.data()) {
    host_ops().copy(model, next);
  }
  return status;
}

Status LocalOptimizer::follow_schedule(Round round) {
  if (!schedule_) {
    return {};
  }
  try {
    schedule_(round, *groups_);
  } catch (const std::exception& exception) {
    return {Fault::unexpected,
            fmt::format("the schedule, in step {}: {}", round + 1, first_line(exception))};
  }
  return {};
}

Status LocalOptimizer::next_model(Round round, std::span<const float> x,
                                  std::span<const float> gradient, std::span<float> next,
                                  const Ops& /*ops*/) {
  const Status status = follow_schedule(round);
  return status.ok() ? step(all(), x, gradient, next) : status;
}

Status LocalOptimizer::direction(Round round, std::span<const float> x,
                                 std::span<const float> gradient, std::span<float> d) {
  begin_parts(round);
  return direction_part(0, x, gradient, d);
}

Status LocalOptimizer::direction_part(std::size_t first, std::span<const float> x,
                                      std::span<const float> gradient, std::span<float> d) {
  if (!begun_.ok()) {
    return begun_;
  }
  if (Status status = step(tensors_of(first, d.size()), x, gradient, d); !status.ok()) {
    return status;
  }
  host_ops().subtract(x, d, d);
  return finite_direction(d, host_ops());
}

void LocalOptimizer::set_learning_rate(double learning_rate) {
  for (auto& group : *groups_) {
    group.options().set_lr(learning_rate);
  }
}

void LocalOptimizer::save(ByteBuffer& out) const {
  ::torch::serialize::OutputArchive archive;
  const Status saved = with_groups(all(), [&] { optimizer_.save(archive); });
  check(saved.ok(), "torch's optimizers can be saved");
  const std::string bytes = archive_bytes(archive);
  out.write_string(name());
  out.write_string(kind_of(optimizer_));
  out.write(std::uint64_t{bytes.size()});
  out.append(std::as_bytes(std::span(bytes)));
  // Torch saves the options of groups, and does not take them back.
  for (const auto& group : *groups_) {
    ::torch::serialize::OutputArchive options;
    group.options().serialize(options);
    const std::string text = archive_bytes(options);
    out.write(std::uint64_t{text.size()});
    out.append(std::as_bytes(std::span(text)));
  }
}

Status LocalOptimizer::load(ByteReader& in) {
  if (Status status = expect_name(in, "step rule", name()); !status.ok()) {
    return status;
  }
  if (Status status = expect_name(in, "torch optimizer", kind_of(optimizer_)); !status.ok()) {
    return status;
  }
  std::vector<std::span<const std::byte>> parts;
  for (std::size_t part = 0; part < 1 + groups_->size(); ++part) {
    const auto size = in.read<std::uint64_t>();
    parts.push_back(in.take(size));
  }
  if (in.failed()) {
    return {Fault::malformed, "the torch optimizer's state ends too early"};
  }
  const Status status = with_groups(all(), [&] {
    auto archive = archive_of(parts[0]);
    optimizer_.load(archive);
    for (std::size_t g = 0; g < optimizer_.param_groups().size(); ++g) {
      auto options = archive_of(parts[1 + g]);
      optimizer_.param_groups()[g].options().serialize(options);
    }
  });
  return status.ok() ? status : Status(Fault::malformed, status.message());
}

}  // namespace sotto::torch
