// Everything that turns floats into packed codes and back: one kernel for each direction.
#include <sotto/kernels/cuda/codes.h>

#include <sotto/kernels/cuda/launch.h>
#include <sotto/kernels/cuda/ops.h>

namespace sotto::cuda {
namespace {

template <typename Coder>
__global__ void __launch_bounds__(kMostThreads) code_kernel(Coder coder, CodeTask task) {
  code_part(DeviceBlock(), coder, task, blockIdx.x, block_memory());
}

template <typename Coder>
__global__ void __launch_bounds__(kMostThreads)
    add_kernel(Coder coder, float a, const std::byte* codes, float* y, std::size_t length) {
  add_part(DeviceBlock(), coder, a, codes, y, length, blockIdx.x, block_memory());
}

template <typename Coder>
void code(const Coder& coder, const CodeTask& task, std::span<std::byte> out, Stream stream) {
  check(out.size() == whole_bytes(coder, task.count), "codes: wrong output length");
  if (task.saturated != nullptr) {
    set_bytes(task.saturated, 0, sizeof(*task.saturated), stream);
  }
  if (task.count > 0) {
    code_kernel<<<launch_blocks(pieces_of(task.count, kTile)), kMostThreads,
                  tile_room_bytes(coder, kTile, true), stream>>>(coder, task);
  }
}

template <typename Coder>
void add(const Coder& coder, float a, std::span<const std::byte> codes, std::span<float> y,
         Stream stream) {
  check(codes.size() == whole_bytes(coder, y.size()), "codes: wrong length");
  if (!y.empty()) {
    add_kernel<<<launch_blocks(pieces_of(y.size(), kTile)), kMostThreads,
                 tile_room_bytes(coder, kTile, false), stream>>>(coder, a, codes.data(), y.data(),
                                                                 y.size());
  }
}

CodeTask narrowing(std::span<const float> x, float* residual, std::span<std::byte> out,
                   std::uint64_t* saturated) {
  CodeTask task;
  task.from = x.data();
  task.residual = residual;
  task.count = x.size();
  task.out = out.data();
  task.saturated = saturated;
  return task;
}

CodeTask rounding_by(CodeTask task, const RandomKey& key, std::size_t first) {
  task.key = key;
  task.first = first;
  return task;
}

GridCoder grid_coder(const Grid& grid, Rounding rounding) {
  check(grid.bits >= 1 && grid.bits <= 8, "a grid of bits outside 1 … 8");
  return GridCoder::of(grid, rounding);
}

}  // namespace

void to_fp16(std::span<const float> x, std::span<std::byte> out, std::uint64_t* saturated,
             Stream stream) {
  code(Fp16Coder(), narrowing(x, nullptr, out, saturated), out, stream);
}

void to_bf16(std::span<const float> x, std::span<std::byte> out, std::uint64_t* saturated,
             Stream stream) {
  code(Bf16Coder(), narrowing(x, nullptr, out, saturated), out, stream);
}

void fp16_residual(std::span<float> v, std::span<std::byte> out, std::uint64_t* saturated,
                   Stream stream) {
  code(Fp16Coder(), narrowing(v, v.data(), out, saturated), out, stream);
}

void bf16_residual(std::span<float> v, std::span<std::byte> out, std::uint64_t* saturated,
                   Stream stream) {
  code(Bf16Coder(), narrowing(v, v.data(), out, saturated), out, stream);
}

void fp32_axpy(float a, std::span<const std::byte> bits, std::span<float> y, Stream stream) {
  add(Fp32Coder(), a, bits, y, stream);
}

void fp16_axpy(float a, std::span<const std::byte> bits, std::span<float> y, Stream stream) {
  add(Fp16Coder(), a, bits, y, stream);
}

void bf16_axpy(float a, std::span<const std::byte> bits, std::span<float> y, Stream stream) {
  add(Bf16Coder(), a, bits, y, stream);
}

void quantize_pack(std::span<const float> x, const Grid& grid, Rounding rounding,
                   const RandomKey& key, std::size_t first, std::span<std::byte> out,
                   std::uint64_t* saturated, Stream stream) {
  code(grid_coder(grid, rounding), rounding_by(narrowing(x, nullptr, out, saturated), key, first),
       out, stream);
}

void quantize_residual(std::span<float> v, const Grid& grid, Rounding rounding,
                       const RandomKey& key, std::size_t first, std::span<std::byte> out,
                       Stream stream) {
  code(grid_coder(grid, rounding), rounding_by(narrowing(v, v.data(), out, nullptr), key, first),
       out, stream);
}

void unpack_axpy(float a, std::span<const std::byte> codes, const Grid& grid, std::span<float> y,
                 Stream stream) {
  add(grid_coder(grid, Rounding::nearest), a, codes, y, stream);
}

void sign_pack(std::span<const float> x, std::span<std::byte> out, Stream stream) {
  code(SignCoder(), narrowing(x, nullptr, out, nullptr), out, stream);
}

void sign_residual(std::span<float> v, float magnitude, std::span<std::byte> out, Stream stream) {
  code(SignCoder{magnitude}, narrowing(v, v.data(), out, nullptr), out, stream);
}

void sign_axpy(float magnitude, std::span<const std::byte> signs, std::span<float> y,
               Stream stream) {
  add(SignCoder{magnitude}, 1.0F, signs, y, stream);
}

}  // namespace sotto::cuda
