// The table of operations for vectors on a CUDA device: what an algorithm calls whose state lies
// there.
//
// Work is put on the queue and goes on behind the caller's back; only an operation that answers (a
// sum, a count, whether all is finite) and copies from and to the host wait for the device. Once
// the device is in fault, answers are such that nobody takes a step on them: nothing is finite,
// sums are NaN. Queue::status() says why. Thread safety: one thread at a time. Memory: room for
// reductions, about a 256th of the longest vector, grown when first needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <sotto/kernels/cuda/memory.h>
#include <sotto/kernels/cuda/queue.h>
#include <sotto/kernels/cuda/workspace.h>
#include <sotto/kernels/ops.h>

namespace sotto::cuda {

class DeviceOps final : public Ops {
 public:
  /// `queue` must outlive it, and all vectors. Throws Error where there is no memory.
  explicit DeviceOps(Queue& queue);
  ~DeviceOps() override;
  DeviceOps(const DeviceOps&) = delete;
  DeviceOps& operator=(const DeviceOps&) = delete;

  std::string_view name() const override { return "CUDA"; }

  bool on_host() const override { return false; }
  float* allocate(std::size_t count) const override;
  void release(float* floats, std::size_t count) const override;
  void to_host(std::span<const float> x, std::span<std::byte> bytes) const override;
  void from_host(std::span<const std::byte> bytes, std::span<float> y) const override;
  /// Whole vectors: a launch costs more than a cache saves.
  std::size_t piece() const override { return std::numeric_limits<std::size_t>::max(); }

  void fill(float value, std::span<float> y) const override;
  void copy(std::span<const float> x, std::span<float> y) const override;
  void scale(float a, std::span<float> y) const override;
  void axpy(float a, std::span<const float> x, std::span<float> y) const override;
  using Ops::combine;
  bool combine(std::span<const Summand> summands, std::span<float> out) const override;
  void subtract(std::span<const float> x, std::span<const float> y,
                std::span<float> out) const override;
  void adam(std::span<const float> g, float beta1, float beta2, float step, float root_scale,
            float epsilon, std::span<float> m, std::span<float> v,
            std::span<float> out) const override;

  double sum(std::span<const float> x) const override;
  double sum_abs(std::span<const float> x) const override;
  double sum_squares(std::span<const float> x) const override;
  double dot(std::span<const float> x, std::span<const float> y) const override;
  MinMax min_max(std::span<const float> x) const override;
  NonFinite count_non_finite(std::span<const float> x) const override;

  std::size_t to_fp16(std::span<const float> x, std::span<std::byte> out) const override;
  std::size_t to_bf16(std::span<const float> x, std::span<std::byte> out) const override;
  std::size_t fp16_residual(std::span<float> v, std::span<std::byte> out,
                            const Soon& soon) const override;
  std::size_t bf16_residual(std::span<float> v, std::span<std::byte> out,
                            const Soon& soon) const override;
  void fp32_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const override;
  void fp16_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const override;
  void bf16_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const override;
  NonFinite fp32_non_finite(std::span<const std::byte> bits) const override;
  NonFinite fp16_non_finite(std::span<const std::byte> bits) const override;
  NonFinite bf16_non_finite(std::span<const std::byte> bits) const override;

  std::size_t quantize_pack(std::span<const float> x, const Grid& grid, Rounding rounding,
                            const RandomKey& key, std::size_t first,
                            std::span<std::byte> out) const override;
  void quantize_residual(std::span<float> v, const Grid& grid, Rounding rounding,
                         const RandomKey& key, std::size_t first, std::span<std::byte> out,
                         const Soon& soon) const override;
  void unpack_axpy(float a, std::span<const std::byte> codes, const Grid& grid,
                   std::span<float> y) const override;
  void sign_pack(std::span<const float> x, std::span<std::byte> out) const override;
  void sign_residual(std::span<float> v, float magnitude, std::span<std::byte> out,
                     const Soon& soon) const override;
  void sign_axpy(float magnitude, std::span<const std::byte> signs,
                 std::span<float> y) const override;

  TopK top_k(std::span<const float> x, std::size_t k) const override;
  void top_k_gather(std::span<const float> x, const TopK& top, std::span<std::uint32_t> indices,
                    std::span<float> values) const override;
  std::size_t gather_above(std::span<const float> x, std::uint32_t threshold,
                           std::span<std::uint32_t> indices,
                           std::span<float> values) const override;

 private:
  Stream enter() const;
  /// What `launch` writes to the T on the device that it is given; `otherwise` after a fault.
  template <typename T, typename Launch>
  T answer(T otherwise, const Launch& launch) const;
  /// As answer, with `bytes` of device memory to work in, which `launch` is given first.
  template <typename T, typename Launch>
  T worked_out(T otherwise, std::size_t bytes, const Launch& launch) const;
  template <typename T, typename Launch>
  T reduced(T otherwise, std::size_t count, const Launch& launch) const;

  Queue& queue_;
  Memory answer_;
  mutable Workspace workspace_;
};

}  // namespace sotto::cuda
