// The operations of a CUDA device, its threads run one after the other on this host: what the
// kernels do (kernels/cuda/*.h), but for the launches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <sotto/kernels/cuda/codes.h>
#include <sotto/kernels/cuda/elementwise.h>
#include <sotto/kernels/cuda/reduction.h>
#include <sotto/kernels/cuda/selection.h>
#include <sotto/kernels/ops.h>

namespace sotto::testing {

/// Memory of a block, at a multiple of 16.
class BlockMemory {
 public:
  explicit BlockMemory(std::size_t bytes) : words_(bytes / sizeof(cuda::FourWords) + 1) {}
  std::byte* data() { return reinterpret_cast<std::byte*>(words_.data()); }

 private:
  std::vector<cuda::FourWords> words_;
};

class EmulatedOps final : public Ops {
 public:
  explicit EmulatedOps(std::uint32_t threads) : block_(threads) {}

  std::string_view name() const override { return "emulated"; }

  void fill(float value, std::span<float> y) const override {
    elementwise(cuda::Fill{value}, {{}, {y.data()}}, y.size());
  }
  void copy(std::span<const float> x, std::span<float> y) const override {
    elementwise(cuda::Copy{}, {{x.data()}, {y.data()}}, y.size());
  }
  void scale(float a, std::span<float> y) const override {
    elementwise(cuda::Scale{a}, {{y.data()}, {y.data()}}, y.size());
  }
  void axpy(float a, std::span<const float> x, std::span<float> y) const override {
    elementwise(cuda::Axpy{a}, {{x.data(), y.data()}, {y.data()}}, y.size());
  }
  using Ops::combine;
  bool combine(std::span<const Summand> summands, std::span<float> out) const override {
    std::uint32_t not_finite = 0;
    cuda::combine_in_parts(summands, out.data(), &not_finite, [&](const auto& op, const auto& at) {
      elementwise(op, at, out.size());
    });
    return not_finite == 0;
  }
  void subtract(std::span<const float> x, std::span<const float> y,
                std::span<float> out) const override {
    elementwise(cuda::Subtract{}, {{x.data(), y.data()}, {out.data()}}, out.size());
  }
  void adam(std::span<const float> g, float beta1, float beta2, float step, float root_scale,
            float epsilon, std::span<float> m, std::span<float> v,
            std::span<float> out) const override {
    elementwise(cuda::Adam{{beta1, beta2, step, root_scale, epsilon}},
                {{g.data(), m.data(), v.data()}, {m.data(), v.data(), out.data()}}, out.size());
  }

  double sum(std::span<const float> x) const override {
    return reduce(cuda::Sum<cuda::Plain>{x.data()}, x.size());
  }
  double sum_abs(std::span<const float> x) const override {
    return reduce(cuda::Sum<cuda::Magnitude>{x.data()}, x.size());
  }
  double sum_squares(std::span<const float> x) const override {
    return reduce(cuda::Sum<cuda::Square>{x.data()}, x.size());
  }
  double dot(std::span<const float> x, std::span<const float> y) const override {
    return reduce(cuda::Sum<cuda::Product>{x.data(), y.data()}, x.size());
  }
  MinMax min_max(std::span<const float> x) const override {
    return reduce(cuda::Extremes{x.data()}, x.size());
  }
  NonFinite count_non_finite(std::span<const float> x) const override {
    return fp32_non_finite(std::as_bytes(x));
  }

  std::size_t to_fp16(std::span<const float> x, std::span<std::byte> out) const override {
    return code(cuda::Fp16Coder{}, x, nullptr, {}, 0, out);
  }
  std::size_t to_bf16(std::span<const float> x, std::span<std::byte> out) const override {
    return code(cuda::Bf16Coder{}, x, nullptr, {}, 0, out);
  }
  std::size_t fp16_residual(std::span<float> v, std::span<std::byte> out,
                            const Soon& /*soon*/) const override {
    return code(cuda::Fp16Coder{}, v, v.data(), {}, 0, out);
  }
  std::size_t bf16_residual(std::span<float> v, std::span<std::byte> out,
                            const Soon& /*soon*/) const override {
    return code(cuda::Bf16Coder{}, v, v.data(), {}, 0, out);
  }
  void fp32_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const override {
    add(cuda::Fp32Coder{}, a, bits, y);
  }
  void fp16_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const override {
    add(cuda::Fp16Coder{}, a, bits, y);
  }
  void bf16_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const override {
    add(cuda::Bf16Coder{}, a, bits, y);
  }
  NonFinite fp32_non_finite(std::span<const std::byte> bits) const override {
    return reduce(cuda::NotFinite<cuda::Fp32Coder>{bits.data()}, bits.size() / 4);
  }
  NonFinite fp16_non_finite(std::span<const std::byte> bits) const override {
    return reduce(cuda::NotFinite<cuda::Fp16Coder>{bits.data()}, bits.size() / 2);
  }
  NonFinite bf16_non_finite(std::span<const std::byte> bits) const override {
    return reduce(cuda::NotFinite<cuda::Bf16Coder>{bits.data()}, bits.size() / 2);
  }

  std::size_t quantize_pack(std::span<const float> x, const Grid& grid, Rounding rounding,
                            const RandomKey& key, std::size_t first,
                            std::span<std::byte> out) const override {
    return code(cuda::GridCoder::of(grid, rounding), x, nullptr, key, first, out);
  }
  void quantize_residual(std::span<float> v, const Grid& grid, Rounding rounding,
                         const RandomKey& key, std::size_t first, std::span<std::byte> out,
                         const Soon& /*soon*/) const override {
    code(cuda::GridCoder::of(grid, rounding), v, v.data(), key, first, out);
  }
  void unpack_axpy(float a, std::span<const std::byte> codes, const Grid& grid,
                   std::span<float> y) const override {
    add(cuda::GridCoder::of(grid, Rounding::nearest), a, codes, y);
  }
  void sign_pack(std::span<const float> x, std::span<std::byte> out) const override {
    code(cuda::SignCoder{}, x, nullptr, {}, 0, out);
  }
  void sign_residual(std::span<float> v, float magnitude, std::span<std::byte> out,
                     const Soon& /*soon*/) const override {
    code(cuda::SignCoder{magnitude}, v, v.data(), {}, 0, out);
  }
  void sign_axpy(float magnitude, std::span<const std::byte> signs,
                 std::span<float> y) const override {
    add(cuda::SignCoder{magnitude}, 1.0F, signs, y);
  }

  TopK top_k(std::span<const float> x, std::size_t k) const override;
  void top_k_gather(std::span<const float> x, const TopK& top, std::span<std::uint32_t> indices,
                    std::span<float> values) const override {
    gather(x, {.top = &top}, indices, values);
  }
  std::size_t gather_above(std::span<const float> x, std::uint32_t threshold,
                           std::span<std::uint32_t> indices,
                           std::span<float> values) const override {
    return gather(x, {.threshold = threshold}, indices, values);
  }

 private:
  template <typename Op>
  void elementwise(const Op& op, const cuda::Streams<Op::kIn, Op::kOut>& at,
                   std::size_t count) const;
  template <typename Reducer>
  typename Reducer::Result reduce(const Reducer& reducer, std::size_t count) const;
  template <typename Coder>
  std::size_t code(const Coder& coder, std::span<const float> x, float* residual,
                   const RandomKey& key, std::size_t first, std::span<std::byte> out) const;
  template <typename Coder>
  void add(const Coder& coder, float a, std::span<const std::byte> codes, std::span<float> y) const;
  std::size_t gather(std::span<const float> x, const cuda::Bound& bound,
                     std::span<std::uint32_t> indices, std::span<float> values) const;

  cuda::HostBlock block_;
};

template <typename Op>
void EmulatedOps::elementwise(const Op& op, const cuda::Streams<Op::kIn, Op::kOut>& at,
                              std::size_t count) const {
  const std::uint32_t phase = cuda::common_phase(at);
  const std::size_t head =
      phase < cuda::kVector
          ? std::min<std::size_t>(count, (cuda::kVector - phase) % cuda::kVector / sizeof(float))
          : count;
  block_.each(
      [&](std::uint32_t thread) { cuda::apply(op, at, count, head, thread, block_.threads()); });
}

template <typename Reducer>
typename Reducer::Result EmulatedOps::reduce(const Reducer& reducer, std::size_t count) const {
  using State = typename Reducer::State;
  std::vector<State> parts((count + kReduceBlock - 1) / kReduceBlock);
  std::vector<State> lanes(block_.threads());
  for (std::size_t index = 0; index < parts.size(); ++index) {
    cuda::reduce_part(block_, reducer, count, index, lanes.data(), parts.data());
  }
  std::vector<typename Reducer::Total> room(block_.threads());
  typename Reducer::Result result = {};
  cuda::finish_parts(block_, reducer, parts.data(), parts.size(), room.data(), &result);
  return result;
}

template <typename Coder>
std::size_t EmulatedOps::code(const Coder& coder, std::span<const float> x, float* residual,
                              const RandomKey& key, std::size_t first,
                              std::span<std::byte> out) const {
  BlockMemory memory(cuda::tile_room_bytes(coder, cuda::kTile, true));
  std::uint64_t saturated = 0;
  const cuda::CodeTask task{x.data(), residual, x.size(), key, first, out.data(), &saturated};
  for (std::size_t index = 0; index * cuda::kTile < x.size(); ++index) {
    cuda::code_part(block_, coder, task, index, memory.data());
  }
  return saturated;
}

template <typename Coder>
void EmulatedOps::add(const Coder& coder, float a, std::span<const std::byte> codes,
                      std::span<float> y) const {
  BlockMemory memory(cuda::tile_room_bytes(coder, cuda::kTile, false));
  for (std::size_t index = 0; index * cuda::kTile < y.size(); ++index) {
    cuda::add_part(block_, coder, a, codes.data(), y.data(), y.size(), index, memory.data());
  }
}

inline TopK EmulatedOps::top_k(std::span<const float> x, std::size_t k) const {
  auto search = std::make_unique<cuda::Search>();
  search->wanted = static_cast<std::uint32_t>(k);
  std::vector<std::uint32_t> sums(cuda::kWarp);
  for (const cuda::Digit digit : cuda::kMagnitudeDigits) {
    block_.each([&](std::uint32_t thread) {
      cuda::count_digits(x.data(), x.size(), digit, search->prefix, search->bins, thread,
                         block_.threads());
    });
    cuda::choose_digit(block_, digit, *search, sums.data());
  }
  return {.threshold = search->prefix, .ties = search->wanted};
}

inline std::size_t EmulatedOps::gather(std::span<const float> x, const cuda::Bound& bound,
                                       std::span<std::uint32_t> indices,
                                       std::span<float> values) const {
  // Each thread has kOwn elements of a tile: no other number of threads will do.
  const cuda::HostBlock block(cuda::kMostThreads);
  BlockMemory memory(cuda::kGatherBytes);
  std::vector<cuda::Ranks> ranks(cuda::kMostThreads);
  std::vector<cuda::Ranks> sums(cuda::kWarp);
  const cuda::GatherRoom room{memory.data(), ranks.data(), sums.data()};
  std::vector<cuda::Ranks> tiles((x.size() + cuda::kTile - 1) / cuda::kTile);
  for (std::size_t index = 0; index < tiles.size(); ++index) {
    cuda::rank_part(block, x.data(), x.size(), bound, room, index, &tiles[index]);
  }
  cuda::Ranks total{};
  cuda::add_up(block, tiles.data(), static_cast<std::uint32_t>(tiles.size()), sums.data(), &total);
  for (std::size_t index = 0; index < tiles.size(); ++index) {
    cuda::gather_part(block, x.data(), x.size(), bound, tiles[index],
                      {indices.data(), values.data(), values.size()}, room, index);
  }
  return total.above;
}

}  // namespace sotto::testing
