#include <sotto/kernels/cuda/elementwise.h>

#include <algorithm>

#include <sotto/kernels/cuda/launch.h>
#include <sotto/kernels/cuda/ops.h>

namespace sotto::cuda {
namespace {

template <typename Op>
__global__ void __launch_bounds__(kMostThreads)
    elementwise_kernel(Op op, Streams<Op::kIn, Op::kOut> at, std::size_t count, std::size_t head) {
  const std::size_t thread = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  apply(op, at, count, head, thread, std::size_t{gridDim.x} * blockDim.x);
}

template <typename Op>
void launch(const Op& op, const Streams<Op::kIn, Op::kOut>& at, std::size_t count, Stream stream) {
  if (count == 0) {
    return;
  }
  const std::uint32_t phase = common_phase(at);
  std::size_t head = count;
  if (phase < kVector) {
    head = std::min<std::size_t>(count, (kVector - phase) % kVector / sizeof(float));
  }
  // Two vectors a thread: enough loads under way, and enough threads for long latencies.
  constexpr std::size_t kEach = std::size_t{2} * kVectorFloats * kMostThreads;
  elementwise_kernel<<<launch_blocks(pieces_of(count, kEach)), kMostThreads, 0, stream>>>(
      op, at, count, head);
}

}  // namespace

void fill(float value, std::span<float> y, Stream stream) {
  launch(Fill{value}, {{}, {y.data()}}, y.size(), stream);
}

void copy(std::span<const float> x, std::span<float> y, Stream stream) {
  check(x.size() == y.size(), "copy: lengths differ");
  launch(Copy{}, {{x.data()}, {y.data()}}, y.size(), stream);
}

void scale(float a, std::span<float> y, Stream stream) {
  launch(Scale{a}, {{y.data()}, {y.data()}}, y.size(), stream);
}

void axpy(float a, std::span<const float> x, std::span<float> y, Stream stream) {
  check(x.size() == y.size(), "axpy: lengths differ");
  launch(Axpy{a}, {{x.data(), y.data()}, {y.data()}}, y.size(), stream);
}

void combine(std::span<const Summand> summands, std::span<float> out, std::uint32_t* not_finite,
             Stream stream) {
  check(!summands.empty(), "combine: at least one summand");
  for (const Summand& summand : summands) {
    check(summand.x.size() == out.size(), "combine: lengths differ");
  }
  set_bytes(not_finite, 0, sizeof(*not_finite), stream);
  combine_in_parts(summands, out.data(), not_finite,
                   [&](const auto& op, const auto& at) { launch(op, at, out.size(), stream); });
}

void subtract(std::span<const float> x, std::span<const float> y, std::span<float> out,
              Stream stream) {
  check(x.size() == y.size() && x.size() == out.size(), "subtract: lengths differ");
  launch(Subtract{}, {{x.data(), y.data()}, {out.data()}}, out.size(), stream);
}

void adam(std::span<const float> g, float beta1, float beta2, float step, float root_scale,
          float epsilon, std::span<float> m, std::span<float> v, std::span<float> out,
          Stream stream) {
  check(g.size() == m.size() && g.size() == v.size() && g.size() == out.size(),
        "adam: lengths differ");
  launch(Adam{{beta1, beta2, step, root_scale, epsilon}},
         {{g.data(), m.data(), v.data()}, {m.data(), v.data(), out.data()}}, out.size(), stream);
}

}  // namespace sotto::cuda
