// What the compressors promise, at the borders of float32: denormals, values near the largest, all
// scales at once, and vectors of one element or with one that is not zero.
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <sotto/base/error.h>
#include <sotto/compress/per_tensor.h>

#include "cases.h"

namespace sotto::test::border_test {

using namespace sotto_test;

namespace {

constexpr float kSmallest = std::numeric_limits<float>::denorm_min();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr std::uint64_t kSeeds[] = {1, 20240611, 0x9E3779B97F4A7C15};

/// Finite values whose exponents are uniform from `low` to `high`, signs at random.
std::vector<float> of_scales(std::size_t n, int low, int high, std::uint64_t seed) {
  RandomStream draws({.seed = seed, .round = 2, .purpose = Purpose::test});
  std::vector<float> x(n);
  for (float& value : x) {
    const auto exponent =
        low + static_cast<int>(draws.below(static_cast<std::uint64_t>(high - low + 1)));
    const double magnitude = std::ldexp(1 + draws.uniform(), exponent);
    value = static_cast<float>(std::min(magnitude, static_cast<double>(kLargest)));
    value = draws.below(2) == 0 ? value : -value;
  }
  return x;
}

/// Zeros but for one element.
std::vector<float> single(std::size_t n, std::size_t place, float value) {
  std::vector<float> x(n);
  x[place] = value;
  return x;
}

std::vector<NamedVector> border_vectors(std::size_t n, std::uint64_t seed) {
  std::vector<float> few(n);
  for (std::size_t i = 0; i < n; ++i) {
    few[i] = static_cast<float>(i % 4) * kSmallest;
  }
  return {{"zeros", std::vector<float>(n)},
          {"0 to 3 times the smallest", few},
          {"the smallest", std::vector<float>(n, kSmallest)},
          {"1001 times the smallest", std::vector<float>(n, 1001 * kSmallest)},
          {"denormals", of_scales(n, -149, -127, seed)},
          {"about the smallest normal", of_scales(n, -129, -124, seed)},
          {"all scales", of_scales(n, -149, 127, seed)},
          {"small scales", of_scales(n, -149, -60, seed)},
          {"huge", of_scales(n, 120, 127, seed)},
          {"the largest", std::vector<float>(n, kLargest)},
          {"near the largest", std::vector<float>(n, 0x1.FEFFFEp127F)},
          {"one, the smallest", single(n, n / 2, kSmallest)},
          {"one denormal", single(n, n - 1, -0x1.8p-140F)},
          {"one, the smallest normal", single(n, 0, 0x1p-126F)},
          {"one", single(n, n / 2, of_scales(1, -20, 20, seed)[0])},
          {"one, huge", single(n, n / 2, 0x1.FCp127F)},
          {"one, the largest", single(n, n - 1, -kLargest)}};
}

/// Each family's own example beside what cases.h tries.
std::vector<std::string> specs() {
  std::vector<std::string> specs = all_specs();
  for (const CompressorInfo& info : compressors()) {
    specs.emplace_back(info.example);
  }
  return specs;
}

/// ‖C(x) − x‖² over some keys. What hardly ever happens may not have been seen: `unseen` is how
/// likely that may be, 0 where every key gives the same.
struct Errors {
  double mean = 0;
  double standard_error = 0;
  double unseen = 0;
  bool saturated = false;
};

Errors errors_of(Compressor& compressor, const std::vector<float>& x, std::uint64_t seed) {
  constexpr int kSamples = 100;
  Errors errors;
  double squares = 0;
  double first = 0;
  for (int i = 0; i < kSamples; ++i) {
    RandomKey key = key_of(static_cast<Round>(i));
    key.seed = seed;
    const auto bytes = encoded(compressor, x, key);
    errors.saturated = errors.saturated || compressor.saturated() > 0;
    const double error = squared_distance(decoded(compressor, bytes, x.size()), x);
    first = i == 0 ? error : first;
    errors.unseen = error == first ? errors.unseen : 7.0 / kSamples;
    errors.mean += error / kSamples;
    squares += error * error / kSamples;
  }
  errors.standard_error = std::sqrt(std::max(0.0, squares - errors.mean * errors.mean) / kSamples);
  return errors;
}

/// The bound with the format's floor, up to float32's rounding of x and C(x), which is relative:
/// nothing is granted to denormals.
double most(const Contract& contract, double bound, const Errors& errors, double norm,
            std::size_t n) {
  const double floor = static_cast<double>(n) * std::pow(contract.floor_per_element, 2);
  const double rounding = 8 * 0x1p-24 * std::sqrt(norm);
  return std::pow(std::sqrt(bound * norm + floor) + rounding, 2) + 5 * errors.standard_error +
         errors.unseen * norm;
}

}  // namespace

TEST_CASE("the stated bounds hold at the borders of float32, whatever the seed") {
  for (const std::string& spec : specs()) {
    CAPTURE(spec);
    const auto compressor = make_compressor(spec);
    for (const std::size_t n : {1U, 2U, 3U, 65U, 300U}) {
      CAPTURE(n);
      const Contract contract = compressor->contract(n);
      for (const std::uint64_t seed : kSeeds) {
        CAPTURE(seed);
        for (const NamedVector& vector : border_vectors(n, seed)) {
          CAPTURE(vector.name);
          const Errors errors = errors_of(*compressor, vector.values, seed);
          if (errors.saturated) {
            continue;
          }
          const double norm = squared_norm(vector.values);
          if (std::isfinite(contract.alpha)) {
            CHECK(errors.mean <= most(contract, std::pow(contract.alpha, 2), errors, norm, n));
          }
          if (contract.delta > 0) {
            CHECK(errors.mean <= most(contract, 1 - contract.delta, errors, norm, n));
          }
          if (std::isfinite(contract.absolute_per_element)) {
            const double bound =
                static_cast<double>(n) * std::pow(contract.absolute_per_element, 2);
            CHECK(errors.mean <= bound * (1 + 1e-5) + 5 * errors.standard_error);
          }
        }
      }
    }
  }
}

TEST_CASE("unbiased compressors keep the mean at the borders of float32") {
  constexpr int kSamples = 1000;
  for (const std::string& spec : specs()) {
    CAPTURE(spec);
    const auto compressor = make_compressor(spec);
    for (const std::size_t n : {3U, 65U}) {
      CAPTURE(n);
      const Contract contract = compressor->contract(n);
      if (!contract.unbiased) {
        continue;
      }
      for (const NamedVector& vector : border_vectors(n, kSeeds[0])) {
        CAPTURE(kSeeds[0]);
        CAPTURE(vector.name);
        const std::vector<float>& x = vector.values;
        // Σ ±(C(x) − x), with the signs of x: biases that follow the elements add up.
        double sum = 0;
        double squares = 0;
        bool saturated = false;
        for (int i = 0; i < kSamples; ++i) {
          RandomKey key = key_of(static_cast<Round>(i));
          key.seed = kSeeds[0];
          const auto c = decoded(*compressor, encoded(*compressor, x, key), n);
          saturated = saturated || compressor->saturated() > 0;
          double along = 0;
          for (std::size_t k = 0; k < n; ++k) {
            along += (static_cast<double>(c[k]) - static_cast<double>(x[k])) * (x[k] < 0 ? -1 : 1);
          }
          sum += along;
          squares += along * along;
        }
        if (saturated) {
          continue;
        }
        // Noise has 16 bits; a step is at most the widest grid's, or twice the format's floor.
        double widest = 0;
        for (const float value : x) {
          widest = std::max(widest, 2 * std::abs(static_cast<double>(value)));
        }
        const double absolute =
            std::isfinite(contract.absolute_per_element) ? contract.absolute_per_element : 0;
        const double step = widest + 2 * contract.floor_per_element + 2 * absolute;
        const double mean = sum / kSamples;
        const double deviation =
            std::sqrt(std::max(0.0, squares / kSamples - mean * mean) / kSamples);
        // A rounding as likely as 7 in all samples may not have been seen.
        const double unseen = 7.0 / kSamples * step;
        CHECK(std::abs(mean) <= 6 * deviation + unseen + static_cast<double>(n) * step * 0x1p-16);
      }
    }
  }
}

TEST_CASE(
    "a family whose format is coarser than float32 near zero says from where its contract holds") {
  for (const CompressorInfo& info : compressors()) {
    CAPTURE(info.name);
    if (is_per_tensor(info.example)) {
      continue;  // its parts say it
    }
    const Contract contract = make_compressor(info.example)->contract(64);
    if (contract.floor_per_element > 0x1p-140) {
      CHECK(info.contract.find("from 2^-") != std::string_view::npos);
    }
  }
}

TEST_CASE("a number that its type does not hold is refused as it was written") {
  for (const auto& [spec, written] :
       {std::pair("grid:8:1e39", "'1e39'"), std::pair("topk:1e400", "'1e400'"),
        std::pair("randk:1e999", "'1e999'"), std::pair("outlier:4,k=1e309", "'1e309'"),
        std::pair("grid:8:1e400; 1d=none", "'1e400'"),
        std::pair("quant:4294967304", "'4294967304'"),
        std::pair("sign,chunk=18446744073709551616", "'18446744073709551616'")}) {
    const std::string shown_spec(spec);
    CAPTURE(shown_spec);
    std::string says;
    try {
      make_compressor(spec);
    } catch (const Error& error) {
      says = error.what();
    }
    CHECK(says.starts_with("compressor: "));
    CHECK(says.find(written) != std::string::npos);
  }
}

}  // namespace sotto::test::border_test
