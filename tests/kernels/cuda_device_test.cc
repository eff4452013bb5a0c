// The operations on a CUDA device, against the reference, where there is one.
#include <doctest/doctest.h>

#include "support/skip.h"

#ifdef SOTTO_HAVE_CUDA
#include "kernels/device_ops.h"
#include "kernels/every_operation.h"

#include <sotto/kernels/cuda/ops.h>
#endif

namespace sotto::test::cuda_device_test {

#ifdef SOTTO_HAVE_CUDA

using namespace sotto::testing;

TEST_CASE("the operations of a CUDA device conform") {
  if (const Status status = cuda::device_status(); !status.ok()) {
    SOTTO_SKIP(status.message());
  }
  MESSAGE(cuda::device_name());
  hold_to_reference(OverDevice());
}

TEST_CASE("a CUDA device reduces and selects from a million elements as the reference") {
  if (const Status status = cuda::device_status(); !status.ok()) {
    SOTTO_SKIP(status.message());
  }
  constexpr std::size_t kMany = 1'000'003;
  constexpr std::size_t kKept = 10'000;
  RandomStream stream({.seed = 17});
  std::vector<float> x(kMany);
  std::ranges::generate(x, [&stream] { return static_cast<float>(stream.normal()); });
  const cuda::Memory memory(std::size_t{64} << 20U);
  const auto device = memory.as<float>(0, kMany);
  cuda::copy_to_device(std::as_bytes(std::span(x)), std::as_writable_bytes(device));
  const auto work = memory.bytes().subspan(std::size_t{16} << 20U, std::size_t{16} << 20U);
  const auto results = memory.bytes().subspan(std::size_t{32} << 20U);
  auto* sum = reinterpret_cast<double*>(results.data());
  auto* top = reinterpret_cast<TopK*>(results.data() + 256);
  const auto indices = memory.as<std::uint32_t>(std::size_t{40} << 20U, kKept);
  const auto values = memory.as<float>(std::size_t{48} << 20U, kKept);
  cuda::sum_abs(device, work, sum, nullptr);
  cuda::top_k(device, kKept, work, top, nullptr);
  cuda::top_k_gather(device, top, work, indices, values, nullptr);
  double found_sum = 0;
  std::vector<std::uint32_t> found_indices(kKept);
  std::vector<float> found_values(kKept);
  cuda::copy_to_host(results.first(sizeof(double)),
                     std::as_writable_bytes(std::span(&found_sum, 1)));
  cuda::copy_to_host(std::as_bytes(indices), std::as_writable_bytes(std::span(found_indices)));
  cuda::copy_to_host(std::as_bytes(values), std::as_writable_bytes(std::span(found_values)));
  CHECK(found_sum == reference_ops().sum_abs(x));
  std::vector<std::uint32_t> expected_indices(kKept);
  std::vector<float> expected_values(kKept);
  reference_ops().top_k_gather(x, reference_ops().top_k(x, kKept), expected_indices,
                               expected_values);
  CHECK(found_indices == expected_indices);
  CHECK(found_values == expected_values);
  cuda::scatter_axpy(-0.5F, indices, values, device, nullptr);
  std::vector<float> found_x(kMany);
  cuda::copy_to_host(std::as_bytes(device), std::as_writable_bytes(std::span(found_x)));
  for (std::size_t k = 0; k < kKept; ++k) {
    x[expected_indices[k]] += -0.5F * expected_values[k];
  }
  CHECK(found_x == x);
}

#else

TEST_CASE("the operations of a CUDA device conform") {
  SOTTO_SKIP("built without CUDA (no nvcc was found)");
}

#endif

}  // namespace sotto::test::cuda_device_test
