// What the compressors promise, measured.
#include <array>
#include <cmath>

#include "cases.h"

namespace sotto::test::contract_test {

using namespace sotto_test;

namespace {

/// Mean and standard error of ‖C(x) − x‖² over independent keys.
struct Measured {
  double mean = 0;
  double standard_error = 0;
  bool saturated = false;
};

Measured measure_error(Compressor& compressor, const std::vector<float>& x, int samples) {
  double sum = 0;
  double squares = 0;
  Measured measured;
  for (int i = 0; i < samples; ++i) {
    const auto bytes = encoded(compressor, x, key_of(static_cast<Round>(i)));
    measured.saturated = measured.saturated || compressor.saturated() > 0;
    const double error = squared_distance(decoded(compressor, bytes, x.size()), x);
    sum += error;
    squares += error * error;
  }
  measured.mean = sum / samples;
  measured.standard_error =
      std::sqrt(std::max(0.0, squares / samples - measured.mean * measured.mean) / samples);
  return measured;
}

/// E‖C(x) − x‖² ≤ bound ‖x‖², up to five standard errors of the measurement, float32's rounding (a
/// few units in the last place of the largest elements) and the format's floor.
void check_bound(const Contract& contract, double bound, const Measured& measured,
                 const std::vector<float>& x) {
  const double norm = squared_norm(x);
  const double rounding = std::pow(4 * 0x1p-24, 2) * norm;
  const double floor = static_cast<double>(x.size()) * std::pow(contract.floor_per_element, 2);
  CHECK(measured.mean <=
        bound * norm * (1 + 1e-6) + 5 * measured.standard_error + rounding + floor);
}

}  // namespace

TEST_CASE("the stated bounds hold on every kind of vector") {
  for (const std::string& spec : all_specs()) {
    CAPTURE(spec);
    const auto compressor = make_compressor(spec);
    for (const std::size_t n : {1U, 2U, 65U, 1000U}) {
      CAPTURE(n);
      const Contract contract = compressor->contract(n);
      for (const NamedVector& vector : vectors(n)) {
        CAPTURE(vector.name);
        const Measured measured = measure_error(*compressor, vector.values, 50);
        if (measured.saturated) {
          continue;
        }
        if (std::isfinite(contract.alpha)) {
          check_bound(contract, std::pow(contract.alpha, 2), measured, vector.values);
        }
        if (contract.delta > 0) {
          check_bound(contract, 1 - contract.delta, measured, vector.values);
        }
        if (std::isfinite(contract.absolute_per_element)) {
          CHECK(measured.mean <=
                static_cast<double>(n) * std::pow(contract.absolute_per_element, 2) * (1 + 1e-5) +
                    5 * measured.standard_error);
        }
      }
    }
  }
}

TEST_CASE("unbiased compressors have the right mean in every direction tried") {
  constexpr int kSamples = 1000;
  constexpr std::size_t n = 600;
  INFO("seed ", kSeed);
  for (const std::string& spec : all_specs()) {
    CAPTURE(spec);
    const auto compressor = make_compressor(spec);
    if (!compressor->contract(n).unbiased) {
      continue;
    }
    for (const auto& x : {gaussian(n), uniform(n, 0.2), std::vector<float>(n, 0.03F)}) {
      encoded(*compressor, x, key_of(0));
      if (compressor->saturated() > 0) {
        continue;
      }
      // Rounding noise has 16 bits: the bias is up to 2^-16 of a step an element, and |w| ≤ 4.
      const double absolute = compressor->contract(n).absolute_per_element;
      const double step = std::isfinite(absolute) ? 2 * absolute : 2 * 4.0;
      const double bias = n * 4 * step * 0x1p-16;
      // ⟨w, C(x) − x⟩ for some directions w: sums of n small terms, so close to normal.
      const auto directions = [&](std::size_t i) {
        return std::array<double, 5>{1, i % 2 == 0 ? 1.0 : -1.0, x[i] < 0 ? -1.0 : 1.0,
                                     static_cast<double>(x[i]), i % 64 == 5 ? 1.0 : 0.0};
      };
      std::array<double, 5> sum{};
      std::array<double, 5> squares{};
      for (int s = 0; s < kSamples; ++s) {
        const auto c =
            decoded(*compressor, encoded(*compressor, x, key_of(static_cast<Round>(s))), n);
        std::array<double, 5> projection{};
        for (std::size_t i = 0; i < n; ++i) {
          const auto w = directions(i);
          for (std::size_t j = 0; j < w.size(); ++j) {
            projection[j] += w[j] * (static_cast<double>(c[i]) - static_cast<double>(x[i]));
          }
        }
        for (std::size_t j = 0; j < projection.size(); ++j) {
          sum[j] += projection[j];
          squares[j] += projection[j] * projection[j];
        }
      }
      for (std::size_t j = 0; j < sum.size(); ++j) {
        CAPTURE(j);
        const double mean = sum[j] / kSamples;
        const double deviation = std::sqrt(squares[j] / kSamples / kSamples);
        CHECK(std::abs(mean) <= 6 * deviation + bias);
      }
    }
  }
}

TEST_CASE("the measured α on Gaussian data is the known one") {
  const auto alpha = [](std::string_view spec) {
    return measure_alpha(*make_compressor(spec), 512 * 40, 5, kSeed);
  };
  CHECK(alpha("none") == 0);
  CHECK(alpha("fp16") < 0x1p-11);
  CHECK(alpha("bf16") < 0x1p-8);
  CHECK(alpha("quant:8,chunk=512") == doctest::Approx(0.0097).epsilon(0.03));
  CHECK(alpha("quant:6,chunk=512") == doctest::Approx(0.039).epsilon(0.03));
  CHECK(alpha("quant:4,chunk=512") == doctest::Approx(0.165).epsilon(0.03));
  CHECK(alpha("quant:2,chunk=512") == doctest::Approx(0.83).epsilon(0.03));
  CHECK(alpha("quant:1,chunk=512") == doctest::Approx(2.8).epsilon(0.03));
  // √(1 − 2/π) = 0.603 for long chunks.
  CHECK(alpha("sign") == doctest::Approx(0.603).epsilon(0.01));
  CHECK(alpha("sign,chunk=512") == doctest::Approx(0.603).epsilon(0.01));
}

TEST_CASE("measuring is deterministic in the seed") {
  const auto compressor = make_compressor("quant:4");
  const double first = measure_alpha(*compressor, 1000, 3, 7);
  CHECK(measure_alpha(*compressor, 1000, 3, 7) == first);
  CHECK(measure_alpha(*compressor, 1000, 3, 8) != first);
  CHECK(measure_alpha(*compressor, 0, 3, 7) == 0);
}

TEST_CASE("a contract meets what follows from it, and says so in one line") {
  const auto contract = [](std::string_view spec, std::size_t n) {
    return make_compressor(spec)->contract(n);
  };
  for (const ContractKind kind : {ContractKind::any, ContractKind::exact, ContractKind::unbiased,
                                  ContractKind::unbiased_absolute, ContractKind::contraction}) {
    CAPTURE(contract_kind_name(kind));
    CHECK(contract("none", 1000).meets(kind));
    CHECK(contract("topk:1", 1000).meets(kind));
  }
  const Contract fine = contract("quant:8", 100000);
  CHECK(fine.meets(ContractKind::unbiased));
  CHECK(fine.meets(ContractKind::contraction));
  CHECK_FALSE(fine.meets(ContractKind::exact));
  CHECK_FALSE(fine.meets(ContractKind::unbiased_absolute));
  CHECK(fine.describe() == "unbiased, α ≤ 0.13");
  CHECK(fine.delta == doctest::Approx(1 - 2048.0 / (2 * 255 * 255)));
  const Contract coarse = contract("quant:2", 100000);
  CHECK(coarse.meets(ContractKind::unbiased));
  CHECK_FALSE(coarse.meets(ContractKind::contraction));
  CHECK_FALSE(contract("quant:1,rounding=nearest", 100).meets(ContractKind::contraction));
  CHECK(contract("quant:2,rounding=nearest", 100).meets(ContractKind::contraction));
  const Contract sparse = contract("topk:0.25", 1000);
  CHECK(sparse.meets(ContractKind::contraction));
  CHECK_FALSE(sparse.meets(ContractKind::unbiased));
  CHECK(sparse.describe() == "contraction, δ ≥ 0.25");
  const Contract grid = contract("grid:8:0.5", 100);
  CHECK(grid.meets(ContractKind::unbiased_absolute));
  CHECK_FALSE(grid.meets(ContractKind::unbiased));
  CHECK_FALSE(grid.meets(ContractKind::contraction));
  CHECK(grid.describe() == "unbiased, standard error ≤ 0.25 per element");
  const Contract random = contract("randk:0.25", 1000);
  CHECK(random.alpha == doctest::Approx(std::sqrt(3.0)));
  CHECK_FALSE(random.meets(ContractKind::contraction));
  CHECK(contract("randk:0.75", 1000).delta == doctest::Approx(1 - (4.0 / 3 - 1)));
  CHECK(contract("randk:0.25,scale=none", 1000).delta == doctest::Approx(0.25));
  CHECK(contract("fp16", 1000).meets(ContractKind::contraction));
  CHECK(contract("fp16", 1000).describe() == "contraction, δ ≥ 1 − 2.4e-07");
  CHECK(contract("sign", 100).delta == doctest::Approx(0.01));
  CHECK(contract("sign,scale=l2", 100).describe() == "no contract");
}

}  // namespace sotto::test::contract_test
