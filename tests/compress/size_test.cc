// How many bytes travel.
#include <fmt/format.h>

#include <sotto/base/frame.h>

#include "cases.h"

namespace sotto::test::size_test {

using namespace sotto_test;

namespace {

constexpr std::size_t kMillion = 1000000;

/// Bytes of a frame that carries `n` Gaussian elements.
std::size_t frame_bytes(std::string_view spec, std::size_t n) {
  const auto compressor = make_compressor(spec);
  return kFrameHeaderBytes + encoded(*compressor, gaussian(n), key_of(1)).size();
}

/// log₂ of the number of ways to choose k of d: what indices cost at least on average.
double index_entropy(double d, double k) {
  return (std::lgamma(d + 1) - std::lgamma(k + 1) - std::lgamma(d - k + 1)) / std::log(2.0);
}

}  // namespace

TEST_CASE("frames of a million elements are within 1 % of the ideal") {
  for (int bits = 1; bits <= 8; ++bits) {
    const double ideal = static_cast<double>(kMillion) * bits / 8;
    for (const auto& form : {"quant:{}", "quant:{},rounding=nearest", "grid:{}:0.01"}) {
      const auto spec = fmt::format(fmt::runtime(form), bits);
      CAPTURE(spec);
      CHECK(static_cast<double>(frame_bytes(spec, kMillion)) <= 1.01 * ideal);
    }
  }
  CHECK(static_cast<double>(frame_bytes("sign", kMillion)) <= 1.01 * kMillion / 8);
  CHECK(static_cast<double>(frame_bytes("fp16", kMillion)) <= 1.01 * kMillion * 2);
  CHECK(static_cast<double>(frame_bytes("none", kMillion)) <= 1.01 * kMillion * 4);
  // The indices of random-k cost nothing.
  CHECK(static_cast<double>(frame_bytes("randk:0.01", kMillion)) <= 1.01 * kMillion / 100 * 4);
}

TEST_CASE("top-k's indices cost within 0.2 bit of their entropy") {
  for (const double keep : {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.5}) {
    CAPTURE(keep);
    const std::size_t n = 100000;
    const double k = keep * static_cast<double>(n);
    const double bytes = static_cast<double>(frame_bytes(fmt::format("topk:{}", keep), n));
    const double index_bits = 8 * (bytes - kFrameHeaderBytes - 5 - 4 * k);
    CHECK(index_bits / k <= index_entropy(static_cast<double>(n), k) / k + 0.2);
  }
}

TEST_CASE("max_bytes is reached or nearly so") {
  for (const std::string& spec : all_specs()) {
    CAPTURE(spec);
    const auto compressor = make_compressor(spec);
    const bool variable = spec.find("topk") != std::string::npos || spec.starts_with("outlier");
    for (const std::size_t n : kLengths) {
      CAPTURE(n);
      const std::size_t used = encoded(*compressor, gaussian(n), key_of(1)).size();
      CHECK(used <= compressor->max_bytes(n));
      if (!variable) {
        CHECK(used == compressor->max_bytes(n));
      }
    }
  }
  // Every gap but the first is empty: the worst case of the indices.
  std::vector<float> x(1000, 0.0F);
  std::fill(x.end() - 100, x.end(), 1.0F);
  const auto compressor = make_compressor("topk:0.1");
  CHECK(encoded(*compressor, x, key_of(1)).size() == compressor->max_bytes(x.size()));
}

}  // namespace sotto::test::size_test
