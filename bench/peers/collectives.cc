#include "collectives.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <stdexcept>

#include <fmt/format.h>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/broadcast.h>
#include <gloo/reduce.h>
#include <gloo/reduce_scatter.h>

#include <sotto/kernels/host/host_ops.h>

namespace sotto::peers {
namespace {

using Step = std::function<void()>;
using ContextPtr = std::shared_ptr<gloo::Context>;

void add(float* out, const float* a, const float* b, std::size_t count) {
  gloo::sum<float>(out, a, b, count);
}

void scale(float factor, float* x, std::size_t count) {
  host_ops().scale(factor, std::span(x, count));
}

/// out ← Σ factor × x, with this machine's instructions for halves: Gloo as Debian has it converts
/// them one by one, which is not what is measured here.
void sum_halves(gloo::float16* out, float factor, std::initializer_list<const gloo::float16*> xs,
                std::size_t count) {
  constexpr std::size_t kChunk = 2048;
  std::array<float, kChunk> room;
  const Ops& ops = host_ops();
  for (std::size_t at = 0; at < count; at += kChunk) {
    const std::size_t size = std::min(kChunk, count - at);
    const auto sum = std::span(room).first(size);
    ops.fill(0, sum);
    for (const gloo::float16* x : xs) {
      ops.fp16_axpy(factor, std::as_bytes(std::span(x + at, size)), sum);
    }
    ops.to_fp16(sum, std::as_writable_bytes(std::span(out + at, size)));
  }
}

void add(gloo::float16* out, const gloo::float16* a, const gloo::float16* b, std::size_t count) {
  sum_halves(out, 1, {a, b}, count);
}

void scale(float factor, gloo::float16* x, std::size_t count) { sum_halves(x, factor, {x}, count); }

template <typename T>
void add_untyped(void* out, const void* a, const void* b, std::size_t count) {
  add(static_cast<T*>(out), static_cast<const T*>(a), static_cast<const T*>(b), count);
}

template <typename T>
const gloo::ReductionFunction<T>* adder() {
  static const gloo::ReductionFunction<T> function(
      gloo::CUSTOM, [](T* x, const T* y, std::size_t count) { add(x, x, y, count); });
  return &function;
}

template <typename T>
Step allreduce(const ContextPtr& context, gloo::AllreduceOptions::Algorithm algorithm, T* data,
               std::size_t count) {
  auto options = std::make_shared<gloo::AllreduceOptions>(context);
  options->setAlgorithm(algorithm);
  options->setOutput(data, count);
  options->setReduceFunction(add_untyped<T>);
  return [options] { gloo::allreduce(*options); };
}

template <typename T>
Step halving_doubling(const ContextPtr& context, T* data, std::size_t count) {
  auto algorithm = std::make_shared<gloo::AllreduceHalvingDoubling<T>>(
      context, std::vector<T*>{data}, static_cast<int>(count), adder<T>());
  return [algorithm] { algorithm->run(); };
}

/// Requires a count that the size divides. The update of a shard is its average.
template <typename T>
Step sharded(const ContextPtr& context, T* data, std::size_t count) {
  const auto size = static_cast<std::size_t>(context->size);
  const std::size_t shard = count / size;
  const std::size_t mine = shard * static_cast<std::size_t>(context->rank);
  auto scatter = std::make_shared<gloo::ReduceScatterHalvingDoubling<T>>(
      context, std::vector<T*>{data}, static_cast<int>(count),
      std::vector<int>(size, static_cast<int>(shard)), adder<T>());
  auto gather = std::make_shared<gloo::AllgatherOptions>(context);
  gather->setOutput(data, count);
  return [=] {
    scatter->run();  // leaves this process's shard in front
    // Gloo's halves have an assignment that loses values.
    std::memmove(static_cast<void*>(data + mine), data, shard * sizeof(T));
    scale(1.0F / static_cast<float>(size), data + mine, shard);
    gloo::allgather(*gather);
  };
}

template <typename T>
Step hierarchical(const ContextPtr& within, const ContextPtr& between, T* data, std::size_t count) {
  auto reduce = std::make_shared<gloo::ReduceOptions>(within);
  reduce->setRoot(0);
  reduce->setOutput(data, count);
  reduce->setReduceFunction(add_untyped<T>);
  auto broadcast = std::make_shared<gloo::BroadcastOptions>(within);
  broadcast->setRoot(0);
  broadcast->setOutput(data, count);
  const Step lead =
      between ? allreduce(between, gloo::AllreduceOptions::Algorithm::RING, data, count) : nullptr;
  return [=] {
    gloo::reduce(*reduce);
    if (lead) {
      lead();
    }
    gloo::broadcast(*broadcast);
  };
}

std::size_t padded(std::size_t elements, int size) {
  const auto parts = static_cast<std::size_t>(size);
  return (elements + parts - 1) / parts * parts;
}

}  // namespace

int even_group(int size) {
  int best = 1;
  for (int divisor = 1; divisor * divisor <= size; ++divisor) {
    best = size % divisor == 0 ? divisor : best;
  }
  return best;
}

std::vector<std::size_t> layer_sizes(std::size_t elements) {
  constexpr std::size_t kLayers = 25;
  constexpr std::size_t kShares = kLayers * (kLayers + 1) / 2;
  const std::size_t bias = std::min<std::size_t>(64, elements / (10 * kLayers));
  const std::size_t weights = elements - kLayers * bias;
  std::vector<std::size_t> sizes;
  std::size_t left = weights;
  for (std::size_t layer = 1; layer <= kLayers; ++layer) {
    const std::size_t size = layer == kLayers ? left : weights * layer / kShares;
    sizes.push_back(size);
    sizes.push_back(bias);
    left -= size;
  }
  std::erase(sizes, 0U);
  return sizes;
}

Averager::Averager(const Place& place, const CollectiveOptions& options, std::size_t elements)
    : elements_(elements),
      context_(meet(place, "all", place.rank, place.size)),
      values_(padded(elements, place.size)) {
  if (options.half) {
    half_.resize(values_.size());
    prepare(place, options, half_.data());
  } else {
    prepare(place, options, values_.data());
  }
}

template <typename T>
void Averager::prepare(const Place& place, const CollectiveOptions& options, T* data) {
  const std::string& name = options.name;
  const bool sharding = name == "sharded";
  sharded_ = sharding;
  share_ = sharding ? 1 : 1.0F / static_cast<float>(place.size);
  if (sharding && !options.fused) {
    throw std::invalid_argument("sharded works on one buffer only; leave --unfused out");
  }
  if (name == "hierarchical") {
    const int size = options.group_size > 0 ? options.group_size : even_group(place.size);
    if (place.size % size != 0) {
      throw std::invalid_argument(
          fmt::format("groups of {} do not divide {} processes", size, place.size));
    }
    const int group = place.rank / size;
    groups_.push_back(meet(place, fmt::format("group-{}", group), place.rank % size, size));
    groups_.push_back(place.rank % size == 0 ? meet(place, "leaders", group, place.size / size)
                                             : nullptr);
  } else {
    bytes_ = 2.0 * (place.size - 1) / place.size * static_cast<double>(elements_ * sizeof(T));
  }
  const std::size_t whole = sharding ? values_.size() : elements_;
  const auto sizes = options.fused ? std::vector<std::size_t>{whole} : layer_sizes(whole);
  using Algorithm = gloo::AllreduceOptions::Algorithm;
  for (const std::size_t count : sizes) {
    if (name == "ring" || name == "bcube") {
      sums_.push_back(
          allreduce(context_, name == "ring" ? Algorithm::RING : Algorithm::BCUBE, data, count));
    } else if (name == "halving-doubling") {
      sums_.push_back(halving_doubling(context_, data, count));
    } else if (sharding) {
      sums_.push_back(sharded(context_, data, count));
    } else if (name == "hierarchical") {
      sums_.push_back(hierarchical(groups_[0], groups_[1], data, count));
    } else {
      throw std::invalid_argument(
          fmt::format("no collective is called '{}': ring, bcube, "
                      "halving-doubling, sharded, hierarchical",
                      name));
    }
    data += count;
  }
}

void Averager::sum() {
  if (!half_.empty()) {
    host_ops().to_fp16(values_, std::as_writable_bytes(std::span(half_)));
  }
  for (const Step& sum : sums_) {
    sum();
  }
}

void Averager::run() {
  const Ops& ops = host_ops();
  sum();
  if (half_.empty()) {
    if (!sharded_) {  // whose processes have divided their shards
      ops.scale(share_, values_);
    }
  } else {
    ops.fill(0, values_);
    ops.fp16_axpy(share_, std::as_bytes(std::span(half_)), values_);
  }
}

void Averager::run_and_step(float rate, std::span<float> x) {
  if (sharded_) {
    run();
  } else if (half_.empty()) {
    sum();
    for (std::size_t i = 0; i < x.size(); ++i) {
      values_[i] *= share_;
      x[i] -= rate * values_[i];
    }
  } else {
    run();
    host_ops().axpy(-rate, values(), x);
  }
}

double Averager::largest(double value) const {
  gloo::AllreduceOptions options(context_);
  options.setOutput(&value, 1);
  options.setReduceFunction([](void* out, const void* a, const void* b, std::size_t /*count*/) {
    *static_cast<double*>(out) =
        std::max(*static_cast<const double*>(a), *static_cast<const double*>(b));
  });
  gloo::allreduce(options);
  return value;
}

}  // namespace sotto::peers
