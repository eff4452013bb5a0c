#include <sotto/kernels/cuda/reduction.h>

#include <algorithm>

#include <sotto/kernels/cuda/coders.h>
#include <sotto/kernels/cuda/launch.h>
#include <sotto/kernels/cuda/ops.h>

namespace sotto::cuda {
namespace {

/// Reduction blocks that a block of threads takes.
constexpr std::size_t kParts = kMostThreads / kWarp;

template <typename Reducer>
__global__ void __launch_bounds__(kMostThreads)
    reduce_kernel(Reducer reducer, std::size_t count, typename Reducer::State* parts) {
  auto* lanes = reinterpret_cast<typename Reducer::State*>(block_memory());
  reduce_part(DeviceBlock(), reducer, count, blockIdx.x, lanes, parts);
}

template <typename Reducer>
__global__ void __launch_bounds__(kMostThreads)
    finish_kernel(Reducer reducer, const typename Reducer::State* parts, std::size_t count,
                  typename Reducer::Result* result) {
  auto* room = reinterpret_cast<typename Reducer::Total*>(block_memory());
  finish_parts(DeviceBlock(), reducer, parts, count, room, result);
}

template <typename Reducer>
void reduce(const Reducer& reducer, std::size_t count, std::span<std::byte> workspace,
            typename Reducer::Result* result, Stream stream) {
  using State = typename Reducer::State;
  check(workspace.size() >= reduction_workspace(count), "a reduction's workspace is too small");
  const std::size_t parts = pieces_of(count, kReduceBlock);
  auto* states = reinterpret_cast<State*>(workspace.data());
  if (parts > 0) {
    reduce_kernel<<<launch_blocks(pieces_of(parts, kParts)), kMostThreads,
                    kMostThreads * sizeof(State), stream>>>(reducer, count, states);
  }
  constexpr std::uint32_t kFinishers = Reducer::kAnyOrder ? kMostThreads : 1;
  finish_kernel<<<1, kFinishers, kFinishers * sizeof(typename Reducer::Total), stream>>>(
      reducer, states, parts, result);
}

template <typename Coder>
void look_through(std::span<const std::byte> bits, std::span<std::byte> workspace,
                  NonFinite* result, Stream stream) {
  reduce(NotFinite<Coder>{bits.data()}, bits.size() / Coder::kBytes, workspace, result, stream);
}

}  // namespace

std::size_t reduction_workspace(std::size_t count) {
  constexpr std::size_t kLargestState =
      std::max({sizeof(float), sizeof(MinMax), sizeof(NonFinite)});
  return std::max<std::size_t>(pieces_of(count, kReduceBlock), 1) * kLargestState;
}

void sum(std::span<const float> x, std::span<std::byte> workspace, double* result, Stream stream) {
  reduce(Sum<Plain>{x.data()}, x.size(), workspace, result, stream);
}

void sum_abs(std::span<const float> x, std::span<std::byte> workspace, double* result,
             Stream stream) {
  reduce(Sum<Magnitude>{x.data()}, x.size(), workspace, result, stream);
}

void sum_squares(std::span<const float> x, std::span<std::byte> workspace, double* result,
                 Stream stream) {
  reduce(Sum<Square>{x.data()}, x.size(), workspace, result, stream);
}

void dot(std::span<const float> x, std::span<const float> y, std::span<std::byte> workspace,
         double* result, Stream stream) {
  check(x.size() == y.size(), "dot: lengths differ");
  reduce(Sum<Product>{x.data(), y.data()}, x.size(), workspace, result, stream);
}

void min_max(std::span<const float> x, std::span<std::byte> workspace, MinMax* result,
             Stream stream) {
  reduce(Extremes{x.data()}, x.size(), workspace, result, stream);
}

void count_non_finite(std::span<const float> x, std::span<std::byte> workspace, NonFinite* result,
                      Stream stream) {
  look_through<Fp32Coder>(std::as_bytes(x), workspace, result, stream);
}

void fp32_non_finite(std::span<const std::byte> bits, std::span<std::byte> workspace,
                     NonFinite* result, Stream stream) {
  look_through<Fp32Coder>(bits, workspace, result, stream);
}

void fp16_non_finite(std::span<const std::byte> bits, std::span<std::byte> workspace,
                     NonFinite* result, Stream stream) {
  look_through<Fp16Coder>(bits, workspace, result, stream);
}

void bf16_non_finite(std::span<const std::byte> bits, std::span<std::byte> workspace,
                     NonFinite* result, Stream stream) {
  look_through<Bf16Coder>(bits, workspace, result, stream);
}

}  // namespace sotto::cuda
