#include <sotto/kernels/cuda/selection.h>

#include <algorithm>
#include <limits>

#include <sotto/kernels/cuda/launch.h>
#include <sotto/kernels/cuda/ops.h>

namespace sotto::cuda {
namespace {

__global__ void begin_kernel(Search* search, std::uint32_t k) {
  for (std::uint32_t bin = threadIdx.x; bin < kDigits; bin += blockDim.x) {
    search->bins[bin] = 0;
  }
  if (threadIdx.x == 0) {
    search->prefix = 0;
    search->wanted = k;
  }
}

__global__ void __launch_bounds__(kMostThreads)
    count_kernel(const float* x, std::size_t count, Digit digit, Search* search) {
  __shared__ std::uint32_t bins[kDigits];
  const DeviceBlock block;
  block.each([&](std::uint32_t thread) {
    for (std::uint32_t k = thread; k < kDigits; k += kMostThreads) {
      bins[k] = 0;
    }
  });
  block.each([&](std::uint32_t thread) {
    count_digits(x, count, digit, search->prefix, bins,
                 std::size_t{blockIdx.x} * kMostThreads + thread,
                 std::size_t{gridDim.x} * kMostThreads);
  });
  block.each([&](std::uint32_t thread) {
    for (std::uint32_t k = thread; k < kDigits; k += kMostThreads) {
      if (bins[k] > 0) {
        add_to(&search->bins[k], bins[k]);
      }
    }
  });
}

__global__ void __launch_bounds__(kMostThreads) choose_kernel(Digit digit, Search* search) {
  __shared__ std::uint32_t sums[kWarp];
  choose_digit(DeviceBlock(), digit, *search, sums);
}

__global__ void found_kernel(const Search* search, TopK* result) {
  result->threshold = search->prefix;
  result->ties = search->wanted;
}

__global__ void __launch_bounds__(kMostThreads)
    rank_kernel(const float* x, std::size_t count, Bound bound, Ranks* tiles) {
  __shared__ Ranks ranks[kMostThreads];
  __shared__ Ranks sums[kWarp];
  rank_part(DeviceBlock(), x, count, bound, {block_memory(), ranks, sums}, blockIdx.x,
            &tiles[blockIdx.x]);
}

__global__ void __launch_bounds__(kMostThreads)
    scan_kernel(Ranks* tiles, std::uint32_t count, std::uint64_t* found) {
  __shared__ Ranks sums[kWarp];
  __shared__ Ranks total;
  add_up(DeviceBlock(), tiles, count, sums, &total);
  if (threadIdx.x == 0 && found != nullptr) {
    *found = total.above;
  }
}

__global__ void __launch_bounds__(kMostThreads)
    gather_kernel(const float* x, std::size_t count, Bound bound, const Ranks* tiles, Selected to) {
  __shared__ Ranks ranks[kMostThreads];
  __shared__ Ranks sums[kWarp];
  gather_part(DeviceBlock(), x, count, bound, tiles[blockIdx.x], to, {block_memory(), ranks, sums},
              blockIdx.x);
}

__global__ void __launch_bounds__(kMostThreads)
    scatter_kernel(float a, const std::uint32_t* indices, const float* values, std::size_t count,
                   float* y) {
  scatter_own(a, indices, values, count, y, std::size_t{blockIdx.x} * kMostThreads + threadIdx.x,
              std::size_t{gridDim.x} * kMostThreads);
}

void check_room(std::size_t count, std::span<std::byte> workspace) {
  check(count <= std::numeric_limits<std::uint32_t>::max(), "more than 2^32 − 1 elements");
  check(workspace.size() >= top_k_workspace(count), "a selection's workspace is too small");
}

void gather(std::span<const float> x, const Bound& bound, std::span<std::byte> workspace,
            const Selected& to, std::uint64_t* found, Stream stream) {
  check_room(x.size(), workspace);
  auto* tiles = reinterpret_cast<Ranks*>(workspace.data());
  const std::size_t count = pieces_of(x.size(), kTile);
  if (count > 0) {
    rank_kernel<<<launch_blocks(count), kMostThreads, kGatherBytes, stream>>>(x.data(), x.size(),
                                                                              bound, tiles);
  }
  scan_kernel<<<1, kMostThreads, 0, stream>>>(tiles, static_cast<std::uint32_t>(count), found);
  if (count > 0) {
    gather_kernel<<<launch_blocks(count), kMostThreads, kGatherBytes, stream>>>(x.data(), x.size(),
                                                                                bound, tiles, to);
  }
}

}  // namespace

std::size_t top_k_workspace(std::size_t count) {
  return std::max(sizeof(Search), pieces_of(count, kTile) * sizeof(Ranks));
}

void top_k(std::span<const float> x, std::size_t k, std::span<std::byte> workspace, TopK* result,
           Stream stream) {
  check(k >= 1 && k <= x.size(), "top_k: k outside 1 … size");
  check_room(x.size(), workspace);
  auto* search = reinterpret_cast<Search*>(workspace.data());
  // Enough blocks for all multiprocessors; each has bins of its own to add up.
  constexpr std::size_t kMostBlocks = 1024;
  const unsigned blocks = launch_blocks(std::min(kMostBlocks, pieces_of(x.size(), kTile)));
  begin_kernel<<<1, kMostThreads, 0, stream>>>(search, static_cast<std::uint32_t>(k));
  for (const Digit digit : kMagnitudeDigits) {
    count_kernel<<<blocks, kMostThreads, 0, stream>>>(x.data(), x.size(), digit, search);
    choose_kernel<<<1, kMostThreads, 0, stream>>>(digit, search);
  }
  found_kernel<<<1, 1, 0, stream>>>(search, result);
}

void top_k_gather(std::span<const float> x, const TopK* top, std::span<std::byte> workspace,
                  std::span<std::uint32_t> indices, std::span<float> values, Stream stream) {
  check(indices.size() == values.size(), "top_k_gather: lengths differ");
  gather(x, {.top = top}, workspace, {indices.data(), values.data(), values.size()}, nullptr,
         stream);
}

void gather_above(std::span<const float> x, std::uint32_t threshold, std::span<std::byte> workspace,
                  std::span<std::uint32_t> indices, std::span<float> values, std::uint64_t* found,
                  Stream stream) {
  check(indices.size() == values.size(), "gather_above: lengths differ");
  gather(x, {.threshold = threshold}, workspace, {indices.data(), values.data(), values.size()},
         found, stream);
}

void scatter_axpy(float a, std::span<const std::uint32_t> indices, std::span<const float> values,
                  std::span<float> y, Stream stream) {
  check(indices.size() == values.size(), "scatter_axpy: lengths differ");
  check(indices.size() <= y.size(), "scatter_axpy: more indices than elements");
  if (!indices.empty()) {
    scatter_kernel<<<launch_blocks(pieces_of(indices.size(), kMostThreads)), kMostThreads, 0,
                     stream>>>(a, indices.data(), values.data(), indices.size(), y.data());
  }
}

}  // namespace sotto::cuda
