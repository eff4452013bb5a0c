#include <sotto/kernels/cuda/device_ops.h>

#include <algorithm>

#include <sotto/kernels/cuda/ops.h>

namespace sotto::cuda {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

/// What a vector on a device in fault is taken for.
NonFinite nothing_finite(std::size_t count) { return {count, 0}; }

}  // namespace

DeviceOps::DeviceOps(Queue& queue) : queue_(queue), answer_(Queue::kMostAnswer) {}

DeviceOps::~DeviceOps() {
  if (!queue_.settle()) {
    (void)answer_.detach();
    workspace_.abandon();
  }
}

Stream DeviceOps::enter() const {
  queue_.enter();
  return queue_.stream();
}

template <typename T, typename Launch>
T DeviceOps::answer(T otherwise, const Launch& launch) const {
  static_assert(sizeof(T) <= Queue::kMostAnswer);
  queue_.enter();
  const auto there = answer_.as<T>(0, 1);
  launch(there.data());
  T found = otherwise;
  return queue_.fetch(std::as_bytes(there), std::as_writable_bytes(std::span(&found, 1)))
             ? found
             : otherwise;
}

template <typename T, typename Launch>
T DeviceOps::worked_out(T otherwise, std::size_t bytes, const Launch& launch) const {
  queue_.enter();
  const auto work = workspace_.of(bytes, queue_);
  return work.size() < bytes ? otherwise
                             : answer(otherwise, [&](T* result) { launch(work, result); });
}

template <typename T, typename Launch>
T DeviceOps::reduced(T otherwise, std::size_t count, const Launch& launch) const {
  return worked_out(otherwise, reduction_workspace(count), launch);
}

float* DeviceOps::allocate(std::size_t count) const {
  if (count == 0) {
    return nullptr;
  }
  queue_.enter();
  Memory memory(count * sizeof(float));
  const auto floats = memory.as<float>(0, count);
  fill(0, floats);
  memory.detach();
  return floats.data();
}

void DeviceOps::release(float* floats, std::size_t count) const {
  queue_.wait();  // work on them may be under way
  if (queue_.hung()) {
    return;
  }
  const Memory freed(std::as_writable_bytes(std::span(floats, count)));
}

void DeviceOps::to_host(std::span<const float> x, std::span<std::byte> bytes) const {
  check(bytes.size() == x.size_bytes(), "to_host: lengths differ");
  if (bytes.size() <= Queue::kMostAnswer) {
    queue_.fetch(std::as_bytes(x), bytes);
  } else {
    queue_.copy(std::as_bytes(x), bytes.data());
    queue_.wait();
  }
  if (!queue_.sound()) {
    std::ranges::fill(bytes, std::byte{0xFF});  // NaNs, which nobody takes for values
  }
}

void DeviceOps::from_host(std::span<const std::byte> bytes, std::span<float> y) const {
  check(bytes.size() == y.size_bytes(), "from_host: lengths differ");
  queue_.copy(bytes, std::as_writable_bytes(y).data());
  queue_.wait();
}

void DeviceOps::fill(float value, std::span<float> y) const { cuda::fill(value, y, enter()); }

void DeviceOps::copy(std::span<const float> x, std::span<float> y) const {
  cuda::copy(x, y, enter());
}

void DeviceOps::scale(float a, std::span<float> y) const { cuda::scale(a, y, enter()); }

void DeviceOps::axpy(float a, std::span<const float> x, std::span<float> y) const {
  cuda::axpy(a, x, y, enter());
}

bool DeviceOps::combine(std::span<const Summand> summands, std::span<float> out) const {
  return answer(std::uint32_t{1}, [&](std::uint32_t* not_finite) {
           cuda::combine(summands, out, not_finite, queue_.stream());
         }) == 0;
}

void DeviceOps::subtract(std::span<const float> x, std::span<const float> y,
                         std::span<float> out) const {
  cuda::subtract(x, y, out, enter());
}

void DeviceOps::adam(std::span<const float> g, float beta1, float beta2, float step,
                     float root_scale, float epsilon, std::span<float> m, std::span<float> v,
                     std::span<float> out) const {
  cuda::adam(g, beta1, beta2, step, root_scale, epsilon, m, v, out, enter());
}

double DeviceOps::sum(std::span<const float> x) const {
  return reduced(kNoNumber, x.size(),
                 [&](auto work, double* result) { cuda::sum(x, work, result, queue_.stream()); });
}

double DeviceOps::sum_abs(std::span<const float> x) const {
  return reduced(kNoNumber, x.size(), [&](auto work, double* result) {
    cuda::sum_abs(x, work, result, queue_.stream());
  });
}

double DeviceOps::sum_squares(std::span<const float> x) const {
  return reduced(kNoNumber, x.size(), [&](auto work, double* result) {
    cuda::sum_squares(x, work, result, queue_.stream());
  });
}

double DeviceOps::dot(std::span<const float> x, std::span<const float> y) const {
  return reduced(kNoNumber, x.size(), [&](auto work, double* result) {
    cuda::dot(x, y, work, result, queue_.stream());
  });
}

MinMax DeviceOps::min_max(std::span<const float> x) const {
  return reduced(MinMax{}, x.size(), [&](auto work, MinMax* result) {
    cuda::min_max(x, work, result, queue_.stream());
  });
}

NonFinite DeviceOps::count_non_finite(std::span<const float> x) const {
  return reduced(nothing_finite(x.size()), x.size(), [&](auto work, NonFinite* result) {
    cuda::count_non_finite(x, work, result, queue_.stream());
  });
}

std::size_t DeviceOps::to_fp16(std::span<const float> x, std::span<std::byte> out) const {
  return answer(std::uint64_t{0}, [&](std::uint64_t* saturated) {
    cuda::to_fp16(x, out, saturated, queue_.stream());
  });
}

std::size_t DeviceOps::to_bf16(std::span<const float> x, std::span<std::byte> out) const {
  return answer(std::uint64_t{0}, [&](std::uint64_t* saturated) {
    cuda::to_bf16(x, out, saturated, queue_.stream());
  });
}

std::size_t DeviceOps::fp16_residual(std::span<float> v, std::span<std::byte> out,
                                     const Soon& /*soon*/) const {
  return answer(std::uint64_t{0}, [&](std::uint64_t* saturated) {
    cuda::fp16_residual(v, out, saturated, queue_.stream());
  });
}

std::size_t DeviceOps::bf16_residual(std::span<float> v, std::span<std::byte> out,
                                     const Soon& /*soon*/) const {
  return answer(std::uint64_t{0}, [&](std::uint64_t* saturated) {
    cuda::bf16_residual(v, out, saturated, queue_.stream());
  });
}

void DeviceOps::fp32_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const {
  cuda::fp32_axpy(a, bits, y, enter());
}

void DeviceOps::fp16_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const {
  cuda::fp16_axpy(a, bits, y, enter());
}

void DeviceOps::bf16_axpy(float a, std::span<const std::byte> bits, std::span<float> y) const {
  cuda::bf16_axpy(a, bits, y, enter());
}

NonFinite DeviceOps::fp32_non_finite(std::span<const std::byte> bits) const {
  const std::size_t count = bits.size() / sizeof(float);
  return reduced(nothing_finite(count), count, [&](auto work, NonFinite* result) {
    cuda::fp32_non_finite(bits, work, result, queue_.stream());
  });
}

NonFinite DeviceOps::fp16_non_finite(std::span<const std::byte> bits) const {
  const std::size_t count = bits.size() / 2;
  return reduced(nothing_finite(count), count, [&](auto work, NonFinite* result) {
    cuda::fp16_non_finite(bits, work, result, queue_.stream());
  });
}

NonFinite DeviceOps::bf16_non_finite(std::span<const std::byte> bits) const {
  const std::size_t count = bits.size() / 2;
  return reduced(nothing_finite(count), count, [&](auto work, NonFinite* result) {
    cuda::bf16_non_finite(bits, work, result, queue_.stream());
  });
}

std::size_t DeviceOps::quantize_pack(std::span<const float> x, const Grid& grid, Rounding rounding,
                                     const RandomKey& key, std::size_t first,
                                     std::span<std::byte> out) const {
  return answer(std::uint64_t{0}, [&](std::uint64_t* saturated) {
    cuda::quantize_pack(x, grid, rounding, key, first, out, saturated, queue_.stream());
  });
}

void DeviceOps::quantize_residual(std::span<float> v, const Grid& grid, Rounding rounding,
                                  const RandomKey& key, std::size_t first, std::span<std::byte> out,
                                  const Soon& /*soon*/) const {
  cuda::quantize_residual(v, grid, rounding, key, first, out, enter());
}

void DeviceOps::unpack_axpy(float a, std::span<const std::byte> codes, const Grid& grid,
                            std::span<float> y) const {
  cuda::unpack_axpy(a, codes, grid, y, enter());
}

void DeviceOps::sign_pack(std::span<const float> x, std::span<std::byte> out) const {
  cuda::sign_pack(x, out, enter());
}

void DeviceOps::sign_residual(std::span<float> v, float magnitude, std::span<std::byte> out,
                              const Soon& /*soon*/) const {
  cuda::sign_residual(v, magnitude, out, enter());
}

void DeviceOps::sign_axpy(float magnitude, std::span<const std::byte> signs,
                          std::span<float> y) const {
  cuda::sign_axpy(magnitude, signs, y, enter());
}

TopK DeviceOps::top_k(std::span<const float> x, std::size_t k) const {
  return worked_out(TopK{}, top_k_workspace(x.size()), [&](auto work, TopK* result) {
    cuda::top_k(x, k, work, result, queue_.stream());
  });
}

void DeviceOps::top_k_gather(std::span<const float> x, const TopK& top,
                             std::span<std::uint32_t> indices, std::span<float> values) const {
  const Stream stream = enter();
  const std::size_t bytes = top_k_workspace(x.size());
  const auto work = workspace_.of(bytes, queue_);
  if (work.size() < bytes) {
    return;
  }
  const auto there = answer_.as<TopK>(0, 1);
  queue_.copy(std::as_bytes(std::span(&top, 1)), std::as_writable_bytes(there).data());
  cuda::top_k_gather(x, there.data(), work, indices, values, stream);
  queue_.wait();  // for the copy: `top` is the caller's
}

std::size_t DeviceOps::gather_above(std::span<const float> x, std::uint32_t threshold,
                                    std::span<std::uint32_t> indices,
                                    std::span<float> values) const {
  return worked_out(
      std::uint64_t{0}, top_k_workspace(x.size()), [&](auto work, std::uint64_t* found) {
        cuda::gather_above(x, threshold, work, indices, values, found, queue_.stream());
      });
}

}  // namespace sotto::cuda
