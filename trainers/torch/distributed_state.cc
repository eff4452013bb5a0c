// What a DistributedOptimizer saves and takes back.
#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <torch/serialize/archive.h>
#include <torch/utils.h>

#include <sotto/base/bytes.h>
#include <sotto/base/error.h>

#include "distributed_run.h"

namespace sotto::torch {
namespace {

constexpr const char* kStateKey = "sotto";
constexpr const char* kRateKey = "sotto_learning_rate";

std::string buffer_key(std::size_t number) { return fmt::format("sotto_buffer_{}", number); }

}  // namespace

void DistributedOptimizer::save(::torch::serialize::OutputArchive& archive) const {
  require_ok(run_->node->drain());
  ByteBuffer state;
  run_->node->save(state);
  const auto bytes = state.bytes();
  auto tensor = ::torch::empty({static_cast<std::int64_t>(bytes.size())}, ::torch::kByte);
  std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(tensor.data_ptr()));
  archive.write(kStateKey, tensor, /*is_buffer=*/true);
  for (std::size_t i = 0; i < run_->buffers.all().size(); ++i) {
    archive.write(buffer_key(i), run_->buffers.all()[i].detach().cpu(), /*is_buffer=*/true);
  }
  if (run_->rule == nullptr) {
    archive.write(kRateKey, c10::IValue(param_groups_.front().options().get_lr()));
  }
}

void DistributedOptimizer::load_buffers(::torch::serialize::InputArchive& archive) {
  const ::torch::NoGradGuard no_gradients;
  const auto& buffers = run_->buffers.all();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    ::torch::Tensor saved;
    if (!archive.try_read(buffer_key(i), saved, /*is_buffer=*/true) ||
        saved.sizes() != buffers[i].sizes() || saved.scalar_type() != buffers[i].scalar_type()) {
      throw RunFault({Fault::malformed, fmt::format("the archive does not hold buffer {} of {} of "
                                                    "this model",
                                                    i, buffers.size())});
    }
    ::torch::Tensor(buffers[i]).copy_(saved);
  }
  run_->own_buffers = true;
}

void DistributedOptimizer::load_plain(::torch::serialize::InputArchive& archive) {
  const auto refuse_with = [](const std::string& why) {
    throw RunFault({Fault::malformed,
                    fmt::format("the archive holds neither the state of a DistributedOptimizer nor "
                                "that of the torch optimizer which it wraps: {}",
                                why)});
  };
  if (run_->local == nullptr) {
    refuse_with("there is none");
  }
  if (run_->settled) {
    throw Error("the nodes have met: load a torch optimizer's archive before");
  }
  // Torch's optimizers wrote this where the format is the one of today.
  c10::IValue version;
  if (!archive.try_read("pytorch_version", version)) {
    refuse_with("no optimizer of torch wrote it");
  }
  ::torch::optim::Optimizer& local = *run_->local;
  std::string fault;
  std::swap(param_groups_, local.param_groups());
  std::swap(state_, local.state());
  try {
    local.load(archive);
  } catch (const std::exception& exception) {
    fault = first_line(exception);
  }
  std::swap(param_groups_, local.param_groups());
  std::swap(state_, local.state());
  if (!fault.empty()) {
    refuse_with(fault);
  }
  build();
}

void DistributedOptimizer::load(::torch::serialize::InputArchive& archive) {
  if (run_->begun || (run_->node && run_->node->round() != 0)) {
    throw Error("load comes before the first step: make a new optimizer, and load into that");
  }
  ::torch::Tensor tensor;
  if (!archive.try_read(kStateKey, tensor, /*is_buffer=*/true)) {
    load_plain(archive);
    return;
  }
  if (tensor.scalar_type() != ::torch::kByte) {
    throw RunFault({Fault::malformed, "the archive holds no state of a DistributedOptimizer"});
  }
  settle();
  tensor = tensor.contiguous();
  ByteReader in(std::as_bytes(std::span(static_cast<const char*>(tensor.data_ptr()),
                                        static_cast<std::size_t>(tensor.numel()))));
  sotto::Optimizer& node = *run_->node;
  require_ok(node.connect());  // which compares initial parameters
  run_->flat->attach();
  require_ok(node.load(in));
  if (!in.finished()) {
    throw RunFault({Fault::malformed, "the saved state goes on where it should end"});
  }
  run_->flat->publish();
  load_buffers(archive);
  c10::IValue rate;
  if (run_->rule == nullptr && archive.try_read(kRateKey, rate) && rate.isDouble()) {
    param_groups_.front().options().set_lr(rate.toDouble());
  }
}

}  // namespace sotto::torch
