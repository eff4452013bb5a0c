// The operations of a CUDA device behind the host's interface: copies there and back, at the same
// offsets from a multiple of 16, between guards that must survive.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/kernels/cuda/memory.h>
#include <sotto/kernels/cuda/ops.h>

namespace sotto::testing {

class DeviceOps final : public Ops {
 public:
  std::string_view name() const override { return "CUDA"; }

  void fill(float value, std::span<float> y) const override {
    Call call(*this);
    cuda::fill(value, call.out(y), nullptr);
  }
  void copy(std::span<const float> x, std::span<float> y) const override {
    Call call(*this);
    const auto to = call.out(y);
    cuda::copy(call.in(x), to, nullptr);
  }
  void scale(float a, std::span<float> y) const override {
    Call call(*this);
    cuda::scale(a, call.inout(y), nullptr);
  }
  void axpy(float a, std::span<const float> x, std::span<float> y) const override {
    Call call(*this);
    const auto to = call.inout(y);
    cuda::axpy(a, x.data() == y.data() ? to : call.in(x), to, nullptr);
  }
  using Ops::combine;
  bool combine(std::span<const Summand> summands, std::span<float> out) const override {
    std::uint32_t not_finite = 7;
    Call call(*this);
    const auto to = call.inout(out);
    std::vector<Summand> there;
    there.reserve(summands.size());
    for (const Summand& summand : summands) {
      there.push_back({summand.a, summand.x.data() == out.data() ? to : call.in(summand.x)});
    }
    cuda::combine(there, to, call.result(not_finite), nullptr);
    call.done();
    return not_finite == 0;
  }
  void subtract(std::span<const float> x, std::span<const float> y,
                std::span<float> out) const override {
    Call call(*this);
    const auto to = call.inout(out);
    const auto from = call.in(x);
    cuda::subtract(from, y.data() == out.data() ? to : call.in(y), to, nullptr);
  }
  void adam(std::span<const float> g, float beta1, float beta2, float step, float root_scale,
            float epsilon, std::span<float> m, std::span<float> v,
            std::span<float> out) const override {
    Call call(*this);
    const auto gradient = call.in(g);
    const auto first = call.inout(m);
    const auto second = call.inout(v);
    cuda::adam(gradient, beta1, beta2, step, root_scale, epsilon, first, second, call.out(out),
               nullptr);
  }

  double sum(std::span<const float> x) const override { return reduced(&cuda::sum, x); }
  double sum_abs(std::span<const float> x) const override { return reduced(&cuda::sum_abs, x); }
  double sum_squares(std::span<const float> x) const override {
    return reduced(&cuda::sum_squares, x);
  }
  double dot(std::span<const float> x, std::span<const float> y) const override {
    double result = 0;
    Call call(*this);
    const auto a = call.in(x);
    const auto b = call.in(y);
    const auto work = call.room(cuda::reduction_workspace(x.size()));
    cuda::dot(a, b, work, call.result(result), nullptr);
    call.done();
    return result;
  }
  MinMax min_max(std::span<const float> x) const override { return reduced(&cuda::min_max, x); }
  NonFinite count_non_finite(std::span<const float> x) const override {
    return reduced(&cuda::count_non_finite, x);
  }

  std::size_t to_fp16(std::span<const float> x, std::span<std::byte> out) const override {
    return narrowed(&cuda::to_fp16, x, out);
  }
  std::size_t to_bf16(std::span<const float> x, std::span<std::byte> out) const override {
    return narrowed(&cuda::to_bf16, x, out);
  }
  std::size_t fp16_residual(std::span<float> v, std::span<std::byte> out,
                            const Soon& /*soon*/) const override {
    return reduced_to_residual(&cuda::fp16_residual, v, out);
  }
  std::size_t bf16_residual(std::span<float> v, std::span<std::byte> out,
                            const Soon& /*soon*/) const override {
    return reduced_to_residual(&cuda::bf16_residual, v, out);
  }
  void fp32_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const override {
    widened(&cuda::fp32_axpy, a, bits, y);
  }
  void fp16_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const override {
    widened(&cuda::fp16_axpy, a, bits, y);
  }
  void bf16_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const override {
    widened(&cuda::bf16_axpy, a, bits, y);
  }
  NonFinite fp32_non_finite(std::span<const std::byte> bits) const override {
    return reduced(&cuda::fp32_non_finite, bits);
  }
  NonFinite fp16_non_finite(std::span<const std::byte> bits) const override {
    return reduced(&cuda::fp16_non_finite, bits);
  }
  NonFinite bf16_non_finite(std::span<const std::byte> bits) const override {
    return reduced(&cuda::bf16_non_finite, bits);
  }

  std::size_t quantize_pack(std::span<const float> x, const Grid& grid, Rounding rounding,
                            const RandomKey& key, std::size_t first,
                            std::span<std::byte> out) const override {
    std::uint64_t saturated = 0;
    Call call(*this);
    const auto from = call.in(x);
    const auto to = call.out(out);
    cuda::quantize_pack(from, grid, rounding, key, first, to, call.result(saturated), nullptr);
    call.done();
    return saturated;
  }
  void quantize_residual(std::span<float> v, const Grid& grid, Rounding rounding,
                         const RandomKey& key, std::size_t first, std::span<std::byte> out,
                         const Soon& /*soon*/) const override {
    Call call(*this);
    const auto changed = call.inout(v);
    cuda::quantize_residual(changed, grid, rounding, key, first, call.out(out), nullptr);
  }
  void unpack_axpy(float a, std::span<const std::byte> codes, const Grid& grid,
                   std::span<float> y) const override {
    Call call(*this);
    const auto from = call.in(codes);
    cuda::unpack_axpy(a, from, grid, call.inout(y), nullptr);
  }
  void sign_pack(std::span<const float> x, std::span<std::byte> out) const override {
    Call call(*this);
    const auto from = call.in(x);
    cuda::sign_pack(from, call.out(out), nullptr);
  }
  void sign_residual(std::span<float> v, float magnitude, std::span<std::byte> out,
                     const Soon& /*soon*/) const override {
    Call call(*this);
    const auto changed = call.inout(v);
    cuda::sign_residual(changed, magnitude, call.out(out), nullptr);
  }
  void sign_axpy(float magnitude, std::span<const std::byte> signs,
                 std::span<float> y) const override {
    Call call(*this);
    const auto from = call.in(signs);
    cuda::sign_axpy(magnitude, from, call.inout(y), nullptr);
  }

  TopK top_k(std::span<const float> x, std::size_t k) const override {
    TopK top;
    Call call(*this);
    const auto from = call.in(x);
    const auto work = call.room(cuda::top_k_workspace(x.size()));
    cuda::top_k(from, k, work, call.result(top), nullptr);
    call.done();
    return top;
  }
  void top_k_gather(std::span<const float> x, const TopK& top, std::span<std::uint32_t> indices,
                    std::span<float> values) const override {
    Call call(*this);
    const auto from = call.in(x);
    const auto bound = call.in(std::span(&top, 1));
    const auto places = call.out(indices);
    const auto found = call.out(values);
    const auto work = call.room(cuda::top_k_workspace(x.size()));
    cuda::top_k_gather(from, bound.data(), work, places, found, nullptr);
  }
  std::size_t gather_above(std::span<const float> x, std::uint32_t threshold,
                           std::span<std::uint32_t> indices,
                           std::span<float> values) const override {
    std::uint64_t count = 0;
    Call call(*this);
    const auto from = call.in(x);
    const auto places = call.inout(indices);  // used only to what is found
    const auto found = call.inout(values);
    const auto work = call.room(cuda::top_k_workspace(x.size()));
    cuda::gather_above(from, threshold, work, places, found, call.result(count), nullptr);
    call.done();
    return count;
  }

 private:
  /// One call's memory on the device; its end waits, looks at the guards and copies back.
  class Call {
   public:
    explicit Call(const DeviceOps& ops) : memory_(ops.memory_) {}
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
    template <typename T>
    T* result(T& host) {
      return out(std::span(&host, 1)).data();
    }
    std::span<std::byte> room(std::size_t bytes) { return take<std::byte>(0, bytes); }

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

  template <typename T, typename Result>
  Result reduced(void (*operation)(std::span<const T>, std::span<std::byte>, Result*, cuda::Stream),
                 std::span<const T> x) const {
    Result result{};
    Call call(*this);
    const auto from = call.in(x);
    const auto work = call.room(cuda::reduction_workspace(x.size()));
    operation(from, work, call.result(result), nullptr);
    call.done();
    return result;
  }
  template <typename Narrow>
  std::size_t narrowed(Narrow* narrow, std::span<const float> x, std::span<std::byte> out) const {
    std::uint64_t saturated = 0;
    Call call(*this);
    const auto from = call.in(x);
    const auto to = call.out(out);
    narrow(from, to, call.result(saturated), nullptr);
    call.done();
    return saturated;
  }
  template <typename Narrow>
  std::size_t reduced_to_residual(Narrow* narrow, std::span<float> v,
                                  std::span<std::byte> out) const {
    std::uint64_t saturated = 0;
    Call call(*this);
    const auto changed = call.inout(v);
    const auto to = call.out(out);
    narrow(changed, to, call.result(saturated), nullptr);
    call.done();
    return saturated;
  }
  template <typename Widen>
  void widened(Widen* widen, float a, std::span<const std::byte> bits, std::span<float> y) const {
    Call call(*this);
    const auto from = call.in(bits);
    widen(a, from, call.inout(y), nullptr);
  }

  cuda::Memory memory_{std::size_t{1} << 20U};
};

}  // namespace sotto::testing
