#include "optimizer_kinds.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <span>
#include <sstream>
#include <string_view>
#include <tuple>
#include <typeinfo>
#include <utility>

#include <c10/util/Type.h>
#include <fmt/format.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <sotto/base/bytes.h>
#include <sotto/base/digest.h>
#include <sotto/base/error.h>

namespace sotto::torch {
namespace {

/// Adagrad has its state from the start, others from their first step on.
bool is_fresh(const ParameterStates& states) {
  return std::ranges::all_of(states, [](const auto& entry) {
    const auto* adagrad =
        dynamic_cast<const ::torch::optim::AdagradParamState*>(entry.second.get());
    return adagrad != nullptr && adagrad->step() == 0;
  });
}

void take_to_float32(::torch::Tensor& tensor) {
  if (tensor.defined()) {
    tensor = tensor.to(::torch::kCPU, ::torch::kFloat).contiguous();
  }
}

/// Torch's accessors of one name read and write.
template <typename State>
bool adam_to_float32(::torch::optim::OptimizerParamState& any) {
  auto* state = dynamic_cast<State*>(&any);
  if (state != nullptr) {
    take_to_float32(state->exp_avg());
    take_to_float32(state->exp_avg_sq());
    take_to_float32(state->max_exp_avg_sq());
  }
  return state != nullptr;
}

struct NamedOption {
  const char* name;
  double value;
};

/// The options of torch's own kinds beside the learning rate, by name.
std::vector<NamedOption> named_options(const ::torch::optim::OptimizerOptions& options) {
  using namespace ::torch::optim;
  const auto adam = [](const auto& of) {
    return std::vector<NamedOption>{{"beta1", std::get<0>(of.betas())},
                                    {"beta2", std::get<1>(of.betas())},
                                    {"eps", of.eps()},
                                    {"weight_decay", of.weight_decay()},
                                    {"amsgrad", of.amsgrad() ? 1.0 : 0.0}};
  };
  if (const auto* sgd = dynamic_cast<const SGDOptions*>(&options)) {
    return {{"momentum", sgd->momentum()},
            {"dampening", sgd->dampening()},
            {"weight_decay", sgd->weight_decay()},
            {"nesterov", sgd->nesterov() ? 1.0 : 0.0}};
  }
  if (const auto* of = dynamic_cast<const AdamOptions*>(&options)) {
    return adam(*of);
  }
  if (const auto* of = dynamic_cast<const AdamWOptions*>(&options)) {
    return adam(*of);
  }
  if (const auto* rms = dynamic_cast<const RMSpropOptions*>(&options)) {
    return {{"alpha", rms->alpha()},
            {"eps", rms->eps()},
            {"weight_decay", rms->weight_decay()},
            {"momentum", rms->momentum()},
            {"centered", rms->centered() ? 1.0 : 0.0}};
  }
  if (const auto* adagrad = dynamic_cast<const AdagradOptions*>(&options)) {
    return {{"lr_decay", adagrad->lr_decay()},
            {"weight_decay", adagrad->weight_decay()},
            {"initial_accumulator_value", adagrad->initial_accumulator_value()},
            {"eps", adagrad->eps()}};
  }
  return {};
}

/// Whether named_options has all that the options say.
bool are_torchs(const ::torch::optim::OptimizerOptions& options) {
  using namespace ::torch::optim;
  const auto& kind = typeid(options);
  return kind == typeid(SGDOptions) || kind == typeid(AdamOptions) ||
         kind == typeid(AdamWOptions) || kind == typeid(RMSpropOptions) ||
         kind == typeid(AdagradOptions);
}

std::string digest_of(std::string_view text) {
  return sha256_hex(std::as_bytes(std::span(text))).substr(0, 16);
}

/// Groups that are compared option by option; with a group a parameter there are thousands, which
/// nodes compare as one.
constexpr std::size_t kNamedGroups = 64;

void add_group(const ::torch::optim::OptimizerParamGroup& group, std::size_t number,
               AgreedSettings& settings) {
  const auto add = [&](std::string_view name, std::string value) {
    settings.emplace_back(fmt::format("torch-optimizer's {} of group {}", name, number),
                          std::move(value));
  };
  const ::torch::optim::OptimizerOptions& options = group.options();
  add("lr", fmt::format("{}", options.get_lr()));
  for (const NamedOption& option : named_options(options)) {
    add(option.name, fmt::format("{}", option.value));
  }
  if (!are_torchs(options)) {
    ::torch::serialize::OutputArchive archive;
    options.serialize(archive);
    add("options", digest_of(archive_bytes(archive)));
  }
  add("tensors", fmt::to_string(group.params().size()));
}

}  // namespace

std::string first_line(const std::exception& exception) {
  const std::string_view text = exception.what();
  return std::string(text.substr(0, text.find('\n')));
}

std::string archive_bytes(::torch::serialize::OutputArchive& archive) {
  std::ostringstream out;
  archive.save_to(out);
  return std::move(out).str();
}

std::vector<::torch::Tensor> parameters_in(const ParameterGroups& groups) {
  std::vector<::torch::Tensor> all;
  for (const auto& group : groups) {
    all.insert(all.end(), group.params().begin(), group.params().end());
  }
  return all;
}

void require_steps(const ::torch::optim::Optimizer* optimizer) {
  if (optimizer == nullptr) {
    refuse("optimizer", "null", "give the torch optimizer that makes a node's steps");
  }
  if (dynamic_cast<const ::torch::optim::LBFGS*>(optimizer) != nullptr) {
    refuse("optimizer", "LBFGS", "it evaluates the loss several times a step; use SGD or Adam");
  }
}

std::string kind_of(const ::torch::optim::Optimizer& optimizer) {
  const auto& kind = typeid(optimizer);
  return c10::demangle(kind.name());
}

bool steps_by_tensor(const ::torch::optim::Optimizer& optimizer) {
  using namespace ::torch::optim;
  const auto& kind = typeid(optimizer);
  return kind == typeid(SGD) || kind == typeid(Adam) || kind == typeid(AdamW) ||
         kind == typeid(RMSprop) || kind == typeid(Adagrad);
}

bool takes_sparse_gradients(const ::torch::optim::Optimizer& optimizer) {
  const auto& kind = typeid(optimizer);
  return kind == typeid(::torch::optim::SGD) || kind == typeid(::torch::optim::Adagrad);
}

bool GroupOptions::one_rate() const {
  return std::ranges::adjacent_find(rates, std::not_equal_to()) == rates.end();
}

GroupOptions group_options(const ParameterGroups& groups) {
  GroupOptions made;
  for (const auto& group : groups) {
    made.rates.push_back(group.options().get_lr());
    for (const NamedOption& option : named_options(group.options())) {
      made.others.push_back(option.value);
    }
  }
  return made;
}

AgreedSettings optimizer_settings(const ::torch::optim::Optimizer& optimizer,
                                  const ParameterGroups& groups) {
  AgreedSettings settings = {{"torch-optimizer", kind_of(optimizer)}};
  AgreedSettings further;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    add_group(groups[i], i, i < kNamedGroups ? settings : further);
  }
  if (!further.empty()) {
    settings.emplace_back(fmt::format("torch-optimizer's groups from {} on", kNamedGroups),
                          digest_of(settings_text(further)));
  }
  return settings;
}

std::string state_text(const ParameterGroups& groups, const ParameterStates& states) {
  if (is_fresh(states)) {
    return "fresh";
  }
  ByteBuffer all;
  for (const auto& group : groups) {
    for (const ::torch::Tensor& parameter : group.params()) {
      const auto found = states.find(state_key(parameter));
      all.write(static_cast<std::uint8_t>(found != states.end()));
      if (found != states.end()) {
        ::torch::serialize::OutputArchive archive;
        try {
          found->second->serialize(archive);
        } catch (const std::exception&) {
          throw Error(
              "the torch optimizer has taken steps already, and its state cannot be compared with "
              "the other nodes': hand it over new");
        }
        all.write_string(archive_bytes(archive));
      }
    }
  }
  return sha256_hex(all.bytes()).substr(0, 16);
}

void to_float32(ParameterStates& states) {
  using namespace ::torch::optim;
  for (const auto& entry : states) {
    OptimizerParamState& any = *entry.second;
    if (adam_to_float32<AdamParamState>(any) || adam_to_float32<AdamWParamState>(any)) {
      continue;
    }
    if (auto* sgd = dynamic_cast<SGDParamState*>(&any)) {
      take_to_float32(sgd->momentum_buffer());
    } else if (auto* rms = dynamic_cast<RMSpropParamState*>(&any)) {
      take_to_float32(rms->square_avg());
      take_to_float32(rms->momentum_buffer());
      take_to_float32(rms->grad_avg());
    } else if (auto* adagrad = dynamic_cast<AdagradParamState*>(&any)) {
      take_to_float32(adagrad->sum());
    }
  }
}

}  // namespace sotto::torch
