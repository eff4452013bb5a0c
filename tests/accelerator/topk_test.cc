// `topk` of vectors on a device, held to the host's bytes (compress/cuda/device/device_topk.h).
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "accelerator/device.h"

#include <sotto/base/philox.h>
#include <sotto/compress/cuda/accelerator.h>
#include <sotto/compress/registry.h>
#include <sotto/kernels/vector.h>

namespace sotto::test::topk_test {

namespace {

std::vector<std::pair<std::string, std::vector<float>>> inputs() {
  constexpr float kTiny = std::numeric_limits<float>::denorm_min();
  constexpr float kHuge = std::numeric_limits<float>::max();
  std::vector<float> noise(10'000);
  RandomStream stream({.seed = 5});
  for (float& value : noise) {
    value = static_cast<float>(stream.normal());
  }
  std::vector<float> ties(777);
  for (std::size_t i = 0; i < ties.size(); ++i) {
    ties[i] = (i % 2 == 0 ? 1.0F : -1.0F) * static_cast<float>(i % 3);
  }
  return {{"none", {}},
          {"one", {-2.5F}},
          {"zeros", std::vector<float>(300, 0.0F)},
          {"zeros of both signs", {0.0F, -0.0F, 0.0F, -0.0F, -0.0F}},
          {"subnormal", {kTiny, -3 * kTiny, 0.0F, 2 * kTiny, -0.0F, kTiny}},
          {"at the ends of the range", {kHuge, 1.0F, -kHuge, kTiny, -1.0F}},
          {"ties", ties},
          {"noise", noise}};
}

}  // namespace

TEST_CASE("topk of a vector on a device has the host's bytes, residual and sum") {
  SOTTO_NEEDS_DEVICE();
  const auto accelerator = cuda::make_accelerator();
  for (const std::string spec : {"topk:0.01", "topk:0.3", "topk:1"}) {
    const auto host = make_compressor(spec);
    const auto there = accelerator->adopt(*host);
    CHECK(there->spec() == host->spec());
    for (const auto& [name, x] : inputs()) {
      CAPTURE(spec);
      CAPTURE(name);
      std::vector<float> residual = x;
      std::vector<std::byte> expected(host->max_bytes(x.size()));
      expected.resize(host->encode_residual(residual, {}, expected));
      std::vector<float> sum(x.size(), 0.75F);
      REQUIRE(host->decode_add(expected, -0.3F, sum).ok());

      Vector v(x.size(), accelerator->ops());
      accelerator->ops().from_host(std::as_bytes(std::span(x)), v);
      std::vector<std::byte> found(there->max_bytes(x.size()));
      found.resize(there->encode(v, {}, found));
      CHECK(found == expected);
      found.resize(there->max_bytes(x.size()));
      found.resize(there->encode_residual(v, {}, found));
      CHECK(found == expected);
      Vector y(x.size(), accelerator->ops());
      accelerator->ops().fill(0.75F, y);
      REQUIRE(there->decode_add(found, -0.3F, y).ok());

      const auto same = [&](const Vector& one, std::vector<float>& other) {
        std::vector<std::byte> bytes(one.size() * sizeof(float));
        accelerator->ops().to_host(one, bytes);
        const auto others = std::as_bytes(std::span(other));
        return std::vector(others.begin(), others.end()) == bytes;
      };
      CHECK(same(v, residual));
      CHECK(same(y, sum));
    }
    // Whatever is refused leaves what it would have been added to.
    Vector y(100, accelerator->ops());
    const std::vector<std::byte> damaged(there->max_bytes(100), std::byte{0xFF});
    CHECK(there->decode_add(damaged, 1, y).fault() == Fault::malformed);
    CHECK(accelerator->finish().ok());
  }
}

TEST_CASE("topk that decodes again, or goes, leaves alone what the device still reads") {
  SOTTO_NEEDS_DEVICE();
  const auto accelerator = cuda::make_accelerator();
  const auto host = make_compressor("topk:0.1");
  auto there = accelerator->adopt(*host);
  std::vector<float> sum(10'000);
  Vector y(sum.size(), accelerator->ops());
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    RandomStream stream({.seed = seed});
    std::vector<float> x(sum.size());
    for (float& value : x) {
      value = static_cast<float>(stream.normal());
    }
    std::vector<std::byte> encoding(host->max_bytes(x.size()));
    encoding.resize(host->encode(x, {}, encoding));
    REQUIRE(host->decode_add(encoding, 0.5F, sum).ok());
    REQUIRE(there->decode_add(encoding, 0.5F, y).ok());
  }
  there.reset();
  std::vector<float> found(sum.size());
  accelerator->ops().to_host(y, std::as_writable_bytes(std::span(found)));
  CHECK(found == sum);
}

}  // namespace sotto::test::topk_test
