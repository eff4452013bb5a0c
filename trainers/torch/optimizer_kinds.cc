#include "optimizer_kinds.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
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
  using namespace ::torch::optim;
  GroupOptions made;
  const auto add = [&](std::initializer_list<double> numbers) {
    made.others.insert(made.others.end(), numbers);
  };
  for (const auto& group : groups) {
    const ::torch::optim::OptimizerOptions& options = group.options();
    made.rates.push_back(options.get_lr());
    if (const auto* sgd = dynamic_cast<const SGDOptions*>(&options)) {
      add({sgd->momentum(), sgd->dampening(), sgd->weight_decay(), sgd->nesterov() ? 1.0 : 0.0});
    } else if (const auto* adam = dynamic_cast<const AdamOptions*>(&options)) {
      add({std::get<0>(adam->betas()), std::get<1>(adam->betas()), adam->eps(),
           adam->weight_decay(), adam->amsgrad() ? 1.0 : 0.0});
    } else if (const auto* adamw = dynamic_cast<const AdamWOptions*>(&options)) {
      add({std::get<0>(adamw->betas()), std::get<1>(adamw->betas()), adamw->eps(),
           adamw->weight_decay(), adamw->amsgrad() ? 1.0 : 0.0});
    } else if (const auto* rms = dynamic_cast<const RMSpropOptions*>(&options)) {
      add({rms->alpha(), rms->eps(), rms->weight_decay(), rms->momentum(),
           rms->centered() ? 1.0 : 0.0});
    } else if (const auto* adagrad = dynamic_cast<const AdagradOptions*>(&options)) {
      add({adagrad->lr_decay(), adagrad->weight_decay(), adagrad->initial_accumulator_value(),
           adagrad->eps()});
    }
  }
  return made;
}

std::string optimizer_text(const ::torch::optim::Optimizer& optimizer,
                           const ParameterGroups& groups) {
  ByteBuffer settings;
  for (const auto& group : groups) {
    ::torch::serialize::OutputArchive archive;
    group.options().serialize(archive);
    settings.write_string(archive_bytes(archive));
    settings.write(std::uint64_t{group.params().size()});
  }
  return fmt::format("{} {}", kind_of(optimizer), sha256_hex(settings.bytes()).substr(0, 16));
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
