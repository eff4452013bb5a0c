// The vector implementation of Ops through Google Highway. Private to the kernels.
//
// Each operation is compiled once for every instruction set that Highway knows here; the first call
// picks the best that the processor has. Bytes equal reference_ops()'s on all of them: the
// operations are rounded one by one (no fused multiply-add), and reductions keep their shape.
// Stateless, so safe from any thread.
#pragma once

#include "../ops.h"

namespace sotto {

class HostOps final : public Ops {
 public:
  std::string_view name() const override;

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
};

}  // namespace sotto
