// The table of vector operations (kernels/ops.h) on a CUDA device, and scatter_axpy, which hosts
// have within their codecs.
//
// Every operation leaves the bytes that reference_ops() does, on any device: the same arithmetic in
// the same order, from functions that are tested on hosts (element.h, coders.h, tile.h,
// reduction.h). One thing differs: where arithmetic gives a NaN, its payload is the device's.
//
// All spans and pointers are to device memory, at any address their type allows; bytes at any
// address at all. Work is put on `stream` and is done in its order. Nothing waits, nothing
// allocates; what an operation finds is written to device memory too. Where one needs room to work,
// the caller provides `workspace`, at a multiple of 16 and of the bytes that the function beside it
// states, and leaves it alone until the work is done. Lengths that do not fit abort, as in Ops;
// launches that fail are told by take_fault (stream.h).
// Thread safety: from any thread. Spans may overlap only as in Ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <sotto/kernels/cuda/stream.h>
#include <sotto/kernels/ops.h>

namespace sotto::cuda {

// Elementwise, as in Ops.
void fill(float value, std::span<float> y, Stream stream);
void copy(std::span<const float> x, std::span<float> y, Stream stream);
void scale(float a, std::span<float> y, Stream stream);
void axpy(float a, std::span<const float> x, std::span<float> y, Stream stream);
/// *not_finite becomes 0 where all of `out` is finite, otherwise 1.
void combine(std::span<const Summand> summands, std::span<float> out, std::uint32_t* not_finite,
             Stream stream);
void subtract(std::span<const float> x, std::span<const float> y, std::span<float> out,
              Stream stream);
void adam(std::span<const float> g, float beta1, float beta2, float step, float root_scale,
          float epsilon, std::span<float> m, std::span<float> v, std::span<float> out,
          Stream stream);

/// Bytes of workspace for any reduction of `count` elements.
std::size_t reduction_workspace(std::size_t count);
void sum(std::span<const float> x, std::span<std::byte> workspace, double* result, Stream stream);
void sum_abs(std::span<const float> x, std::span<std::byte> workspace, double* result,
             Stream stream);
void sum_squares(std::span<const float> x, std::span<std::byte> workspace, double* result,
                 Stream stream);
void dot(std::span<const float> x, std::span<const float> y, std::span<std::byte> workspace,
         double* result, Stream stream);
void min_max(std::span<const float> x, std::span<std::byte> workspace, MinMax* result,
             Stream stream);
void count_non_finite(std::span<const float> x, std::span<std::byte> workspace, NonFinite* result,
                      Stream stream);
void fp32_non_finite(std::span<const std::byte> bits, std::span<std::byte> workspace,
                     NonFinite* result, Stream stream);
void fp16_non_finite(std::span<const std::byte> bits, std::span<std::byte> workspace,
                     NonFinite* result, Stream stream);
void bf16_non_finite(std::span<const std::byte> bits, std::span<std::byte> workspace,
                     NonFinite* result, Stream stream);

// Floats in bytes. *saturated is what Ops returns.
void to_fp16(std::span<const float> x, std::span<std::byte> out, std::uint64_t* saturated,
             Stream stream);
void to_bf16(std::span<const float> x, std::span<std::byte> out, std::uint64_t* saturated,
             Stream stream);
void fp16_residual(std::span<float> v, std::span<std::byte> out, std::uint64_t* saturated,
                   Stream stream);
void bf16_residual(std::span<float> v, std::span<std::byte> out, std::uint64_t* saturated,
                   Stream stream);
void fp32_axpy(float a, std::span<const std::byte> bits, std::span<float> y, Stream stream);
void fp16_axpy(float a, std::span<const std::byte> bits, std::span<float> y, Stream stream);
void bf16_axpy(float a, std::span<const std::byte> bits, std::span<float> y, Stream stream);

// Grids and signs.
void quantize_pack(std::span<const float> x, const Grid& grid, Rounding rounding,
                   const RandomKey& key, std::size_t first, std::span<std::byte> out,
                   std::uint64_t* saturated, Stream stream);
void quantize_residual(std::span<float> v, const Grid& grid, Rounding rounding,
                       const RandomKey& key, std::size_t first, std::span<std::byte> out,
                       Stream stream);
void unpack_axpy(float a, std::span<const std::byte> codes, const Grid& grid, std::span<float> y,
                 Stream stream);
void sign_pack(std::span<const float> x, std::span<std::byte> out, Stream stream);
void sign_residual(std::span<float> v, float magnitude, std::span<std::byte> out, Stream stream);
void sign_axpy(float magnitude, std::span<const std::byte> signs, std::span<float> y,
               Stream stream);

// Sparse; at most 2^32 − 1 elements.
/// Bytes of workspace for each of the three.
std::size_t top_k_workspace(std::size_t count);
void top_k(std::span<const float> x, std::size_t k, std::span<std::byte> workspace, TopK* result,
           Stream stream);
/// `top` is what top_k wrote for k = indices.size(); outputs of another length are left in part
/// unwritten, and never written past their end.
void top_k_gather(std::span<const float> x, const TopK* top, std::span<std::byte> workspace,
                  std::span<std::uint32_t> indices, std::span<float> values, Stream stream);
/// *found is what Ops returns.
void gather_above(std::span<const float> x, std::uint32_t threshold, std::span<std::byte> workspace,
                  std::span<std::uint32_t> indices, std::span<float> values, std::uint64_t* found,
                  Stream stream);
/// y[indices[k]] ← y[indices[k]] + a × values[k]; the indices are distinct and below y.size().
void scatter_axpy(float a, std::span<const std::uint32_t> indices, std::span<const float> values,
                  std::span<float> y, Stream stream);

}  // namespace sotto::cuda
