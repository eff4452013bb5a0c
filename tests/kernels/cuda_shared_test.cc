// The code that CUDA devices run, run here: it leaves the reference's bytes. What is not covered is
// only what a device does by itself: launches, and that its threads wait for each other.
#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <vector>

#include "kernels/emulated_ops.h"
#include "kernels/every_operation.h"

namespace sotto::test::cuda_shared_test {

using namespace sotto::testing;

TEST_CASE("what CUDA devices do conforms, with any number of threads") {
  for (const std::uint32_t threads : {64U, 96U, 256U}) {
    INFO("threads ", threads);
    hold_to_reference(EmulatedOps(threads));
  }
}

TEST_CASE("elements that CUDA devices scatter to come out as one by one, and no other is touched") {
  constexpr std::size_t kMany = 1000;
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
  for (std::uint32_t i = 3; i < kMany; i += 7) {
    indices.push_back(i);
    values.push_back(0.1F * static_cast<float>(i) - 30.0F);
  }
  std::vector<float> expected(kMany, 0.3F);
  for (std::size_t k = 0; k < indices.size(); ++k) {
    const float product = -0.7F * values[k];
    expected[indices[k]] = expected[indices[k]] + product;
  }
  for (const std::size_t threads : {1U, 64U, 1000U}) {
    std::vector<float> y(kMany, 0.3F);
    for (std::size_t thread = threads; thread-- > 0;) {
      cuda::scatter_own(-0.7F, indices.data(), values.data(), indices.size(), y.data(), thread,
                        threads);
    }
    CHECK(y == expected);
  }
}

TEST_CASE("every half-precision bit pattern widens on CUDA devices as in the reference") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const auto bytes = std::as_bytes(std::span(&half, 1));
    std::array<float, 1> fp16 = {-0.0F};
    std::array<float, 1> bf16 = {-0.0F};
    reference_ops().fp16_axpy(1.0F, bytes, fp16);
    reference_ops().bf16_axpy(1.0F, bytes, bf16);
    const float wide16 = -0.0F + 1.0F * cuda::fp16_value(half);
    const float wideb = -0.0F + 1.0F * cuda::bf16_value(half);
    // The payload of a NaN is the processor's.
    REQUIRE((std::isnan(wide16)
                 ? std::isnan(fp16[0])
                 : std::bit_cast<std::uint32_t>(wide16) == std::bit_cast<std::uint32_t>(fp16[0])));
    REQUIRE((std::isnan(wideb)
                 ? std::isnan(bf16[0])
                 : std::bit_cast<std::uint32_t>(wideb) == std::bit_cast<std::uint32_t>(bf16[0])));
  }
}

TEST_CASE("values halfway between two halves round on CUDA devices as in the reference") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    // Between every two neighbours of bfloat16, and so of every second of fp16: just below
    // halfway, halfway and just above; and the same in fp16's spacing.
    for (const std::uint32_t low :
         {0x7FFFU, 0x8000U, 0x8001U, 0x0FFFU, 0x1000U, 0x1001U, 0x3000U}) {
      const float value = std::bit_cast<float>(bits << 16U | low);
      std::array<std::uint16_t, 1> fp16{};
      std::array<std::uint16_t, 1> bf16{};
      const std::size_t saturated =
          reference_ops().to_fp16({&value, 1}, std::as_writable_bytes(std::span(fp16)));
      const std::size_t saturated_bf16 =
          reference_ops().to_bf16({&value, 1}, std::as_writable_bytes(std::span(bf16)));
      REQUIRE(cuda::fp16_bits(value) == fp16[0]);
      REQUIRE(cuda::bf16_bits(value) == bf16[0]);
      REQUIRE(cuda::saturates_fp16(value) == (saturated == 1));
      REQUIRE(cuda::saturates_bf16(value) == (saturated_bf16 == 1));
    }
  }
}

TEST_CASE("each thread of a CUDA block takes the noise of its own elements, all once") {
  const RandomKey key{.seed = 99, .rank = 1, .round = 2, .purpose = Purpose::quantize};
  for (const std::size_t first : {std::size_t{0}, std::size_t{1}, std::size_t{127},
                                  std::size_t{128}, std::size_t{4294967295}}) {
    for (std::uint32_t count = 0; count <= 300; ++count) {
      std::vector<int> seen(count);
      for (std::uint32_t thread = 0; thread < 64; ++thread) {
        cuda::each_noise(key, first, count, thread, 64, [&](std::uint32_t i, std::uint32_t random) {
          ++seen[i];
          REQUIRE(random == rounding_noise(key, first + i));
        });
      }
      REQUIRE(std::ranges::all_of(seen, [](int times) { return times == 1; }));
    }
  }
}

}  // namespace sotto::test::cuda_shared_test
