// cuda::DeviceOps behind the host's interface: copies there and back, at the same offsets from a
// multiple of 16, between guards that must survive.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/kernels/cuda/device_ops.h>
#include <sotto/kernels/cuda/memory.h>

namespace sotto::testing {

class OverDevice final : public Ops {
 public:
  std::string_view name() const override { return "over CUDA"; }

  void fill(float value, std::span<float> y) const override {
    Call call(*this);
    ops_.fill(value, call.out(y));
  }
  void copy(std::span<const float> x, std::span<float> y) const override {
    Call call(*this);
    const auto to = call.out(y);
    ops_.copy(call.in(x), to);
  }
  void scale(float a, std::span<float> y) const override {
    Call call(*this);
    ops_.scale(a, call.inout(y));
  }
  void axpy(float a, std::span<const float> x, std::span<float> y) const override {
    Call call(*this);
    const auto to = call.inout(y);
    ops_.axpy(a, x.data() == y.data() ? to : call.in(x), to);
  }
  using Ops::combine;
  bool combine(std::span<const Summand> summands, std::span<float> out) const override {
    Call call(*this);
    const auto to = call.inout(out);
    std::vector<Summand> there;
    there.reserve(summands.size());
    for (const Summand& summand : summands) {
      there.push_back({summand.a, summand.x.data() == out.data() ? to : call.in(summand.x)});
    }
    return ops_.combine(there, to);
  }
  void subtract(std::span<const float> x, std::span<const float> y,
                std::span<float> out) const override {
    Call call(*this);
    const auto to = call.inout(out);
    const auto from = call.in(x);
    ops_.subtract(from, y.data() == out.data() ? to : call.in(y), to);
  }
  void adam(std::span<const float> g, float beta1, float beta2, float step, float root_scale,
            float epsilon, std::span<float> m, std::span<float> v,
            std::span<float> out) const override {
    Call call(*this);
    const auto gradient = call.in(g);
    const auto first = call.inout(m);
    const auto second = call.inout(v);
    ops_.adam(gradient, beta1, beta2, step, root_scale, epsilon, first, second, call.out(out));
  }

  double sum(std::span<const float> x) const override {
    Call call(*this);
    return ops_.sum(call.in(x));
  }
  double sum_abs(std::span<const float> x) const override {
    Call call(*this);
    return ops_.sum_abs(call.in(x));
  }
  double sum_squares(std::span<const float> x) const override {
    Call call(*this);
    return ops_.sum_squares(call.in(x));
  }
  double dot(std::span<const float> x, std::span<const float> y) const override {
    Call call(*this);
    const auto a = call.in(x);
    return ops_.dot(a, call.in(y));
  }
  MinMax min_max(std::span<const float> x) const override {
    Call call(*this);
    return ops_.min_max(call.in(x));
  }
  NonFinite count_non_finite(std::span<const float> x) const override {
    Call call(*this);
    return ops_.count_non_finite(call.in(x));
  }

  std::size_t to_fp16(std::span<const float> x, std::span<std::byte> out) const override {
    Call call(*this);
    const auto from = call.in(x);
    return ops_.to_fp16(from, call.out(out));
  }
  std::size_t to_bf16(std::span<const float> x, std::span<std::byte> out) const override {
    Call call(*this);
    const auto from = call.in(x);
    return ops_.to_bf16(from, call.out(out));
  }
  std::size_t fp16_residual(std::span<float> v, std::span<std::byte> out,
                            const Soon& soon) const override {
    Call call(*this);
    const auto changed = call.inout(v);
    return ops_.fp16_residual(changed, call.out(out), soon);
  }
  std::size_t bf16_residual(std::span<float> v, std::span<std::byte> out,
                            const Soon& soon) const override {
    Call call(*this);
    const auto changed = call.inout(v);
    return ops_.bf16_residual(changed, call.out(out), soon);
  }
  void fp32_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const override {
    Call call(*this);
    const auto from = call.in(bits);
    ops_.fp32_axpy(a, from, call.inout(y));
  }
  void fp16_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const override {
    Call call(*this);
    const auto from = call.in(bits);
    ops_.fp16_axpy(a, from, call.inout(y));
  }
  void bf16_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const override {
    Call call(*this);
    const auto from = call.in(bits);
    ops_.bf16_axpy(a, from, call.inout(y));
  }
  NonFinite fp32_non_finite(std::span<const std::byte> bits) const override {
    Call call(*this);
    return ops_.fp32_non_finite(call.in(bits));
  }
  NonFinite fp16_non_finite(std::span<const std::byte> bits) const override {
    Call call(*this);
    return ops_.fp16_non_finite(call.in(bits));
  }
  NonFinite bf16_non_finite(std::span<const std::byte> bits) const override {
    Call call(*this);
    return ops_.bf16_non_finite(call.in(bits));
  }

  std::size_t quantize_pack(std::span<const float> x, const Grid& grid, Rounding rounding,
                            const RandomKey& key, std::size_t first,
                            std::span<std::byte> out) const override {
    Call call(*this);
    const auto from = call.in(x);
    return ops_.quantize_pack(from, grid, rounding, key, first, call.out(out));
  }
  void quantize_residual(std::span<float> v, const Grid& grid, Rounding rounding,
                         const RandomKey& key, std::size_t first, std::span<std::byte> out,
                         const Soon& soon) const override {
    Call call(*this);
    const auto changed = call.inout(v);
    ops_.quantize_residual(changed, grid, rounding, key, first, call.out(out), soon);
  }
  void unpack_axpy(float a, std::span<const std::byte> codes, const Grid& grid,
                   std::span<float> y) const override {
    Call call(*this);
    const auto from = call.in(codes);
    ops_.unpack_axpy(a, from, grid, call.inout(y));
  }
  void sign_pack(std::span<const float> x, std::span<std::byte> out) const override {
    Call call(*this);
    const auto from = call.in(x);
    ops_.sign_pack(from, call.out(out));
  }
  void sign_residual(std::span<float> v, float magnitude, std::span<std::byte> out,
                     const Soon& soon) const override {
    Call call(*this);
    const auto changed = call.inout(v);
    ops_.sign_residual(changed, magnitude, call.out(out), soon);
  }
  void sign_axpy(float magnitude, std::span<const std::byte> signs,
                 std::span<float> y) const override {
    Call call(*this);
    const auto from = call.in(signs);
    ops_.sign_axpy(magnitude, from, call.inout(y));
  }

  TopK top_k(std::span<const float> x, std::size_t k) const override {
    Call call(*this);
    return ops_.top_k(call.in(x), k);
  }
  void top_k_gather(std::span<const float> x, const TopK& top, std::span<std::uint32_t> indices,
                    std::span<float> values) const override {
    Call call(*this);
    const auto from = call.in(x);
    const auto places = call.out(indices);
    ops_.top_k_gather(from, top, places, call.out(values));
  }
  std::size_t gather_above(std::span<const float> x, std::uint32_t threshold,
                           std::span<std::uint32_t> indices,
                           std::span<float> values) const override {
    Call call(*this);
    const auto from = call.in(x);
    const auto places = call.inout(indices);  // used only to what is found
    return ops_.gather_above(from, threshold, places, call.inout(values));
  }

 private:
  /// One call's memory on the device; its end waits, looks at the guards and copies back.
  class Call {
   public:
    explicit Call(const OverDevice& over) : memory_(over.memory_) {}
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() noexcept(false) {
      if (std::uncaught_exceptions() == 0) {
        done();
      }
    }

    template <typename T>
    std::span<const T> in(std::span<const T> host) {
      const auto device = take<T>(phase(host), host.size());
      cuda::copy_to_device(std::as_bytes(host), std::as_writable_bytes(device));
      return device;
    }
    template <typename T>
    std::span<T> out(std::span<T> host) {
      const auto device = take<T>(phase(std::span<const T>(host)), host.size());
      back_.push_back({std::as_bytes(device), std::as_writable_bytes(host)});
      return device;
    }
    template <typename T>
    std::span<T> inout(std::span<T> host) {
      const auto device = out(host);
      cuda::copy_to_device(std::as_bytes(host), std::as_writable_bytes(device));
      return device;
    }
    void done() {
      if (finished_) {
        return;
      }
      finished_ = true;
      const Status status = cuda::synchronize();
      REQUIRE_MESSAGE(status.ok(), status.message());
      std::array<std::byte, kGuard> guard{};
      for (const std::span<std::byte> place : guards_) {
        cuda::copy_to_host(place, guard);
        REQUIRE(std::ranges::all_of(guard, [](std::byte byte) { return byte == kSentinel; }));
      }
      for (const auto& [device, host] : back_) {
        cuda::copy_to_host(device, host);
      }
    }

   private:
    static constexpr std::size_t kGuard = 64;
    static constexpr std::size_t kLine = 256;
    static constexpr std::byte kSentinel{0xA5};

    template <typename T>
    static std::size_t phase(std::span<const T> host) {
      return reinterpret_cast<std::uintptr_t>(host.data()) % 64;
    }
    template <typename T>
    std::span<T> take(std::size_t phase, std::size_t count) {
      end_ = (end_ + kLine - 1) / kLine * kLine + kLine + phase;
      const auto device = memory_.as<T>(end_, count);
      guard(end_ - kGuard);
      end_ += count * sizeof(T);
      guard(end_);
      end_ += kGuard;
      return device;
    }
    void guard(std::size_t at) {
      static const std::array<std::byte, kGuard> sentinels = [] {
        std::array<std::byte, kGuard> bytes{};
        bytes.fill(kSentinel);
        return bytes;
      }();
      guards_.push_back(memory_.bytes().subspan(at, kGuard));
      cuda::copy_to_device(sentinels, guards_.back());
    }

    const cuda::Memory& memory_;
    std::size_t end_ = 0;
    std::vector<std::span<std::byte>> guards_;
    std::vector<std::pair<std::span<const std::byte>, std::span<std::byte>>> back_;
    bool finished_ = false;
  };

  mutable cuda::Queue queue_;
  cuda::DeviceOps ops_{queue_};
  cuda::Memory memory_{std::size_t{1} << 20U};
};

}  // namespace sotto::testing
