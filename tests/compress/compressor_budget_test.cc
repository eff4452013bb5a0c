// The compressor by tensor that fits into a number of bytes (compress/compressor_budget.h).
#include <sotto/compress/compressor_budget.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/compress/per_tensor.h>
#include <sotto/compress/registry.h>

namespace sotto::test::compressor_budget_test {

namespace {

/// Tensors of drawn sizes, and vectors whose tensors differ in scale by up to 100.
struct Drawn {
  Drawn(RandomStream& stream, std::size_t tensors) {
    std::vector<float> scales;
    for (std::size_t k = 0; k < tensors; ++k) {
      append_block(layout, "t" + std::to_string(k), {1 + stream.below(700)});
      scales.push_back(static_cast<float>(std::pow(10, 2 * stream.uniform() - 1)));
    }
    for (int sample = 0; sample < 3; ++sample) {
      auto& v = samples.emplace_back(dimension_of(layout));
      for (std::size_t k = 0; k < tensors; ++k) {
        for (float& value : layout[k].of(std::span(v))) {
          value = scales[k] * static_cast<float>(stream.normal());
        }
      }
    }
  }

  ParameterLayout layout;
  std::vector<std::vector<float>> samples;
};

/// √(Σ‖C(v) − v‖² / Σ‖v‖²) over the samples, by other keys than those of the choice.
double relative_error(const std::string& spec, const Drawn& drawn) {
  const auto compressor = make_compressor(spec, ContractKind::any, host_ops(), drawn.layout);
  double lost = 0;
  double whole = 0;
  for (std::size_t k = 0; k < drawn.samples.size(); ++k) {
    std::vector<float> v = drawn.samples[k];
    for (const float value : v) {
      whole += value * value;
    }
    std::vector<std::byte> bytes(compressor->max_bytes(v.size()));
    (void)compressor->encode_residual(v, {.seed = 1000 + k}, bytes);
    for (const float value : v) {
      lost += value * value;
    }
  }
  return std::sqrt(lost / whole);
}

std::size_t bytes_of(const std::string& spec, const ParameterLayout& layout) {
  return make_compressor(spec, ContractKind::any, host_ops(), layout)
      ->max_bytes(dimension_of(layout));
}

}  // namespace

TEST_CASE("what is chosen fits, and errs no more than any one compressor that fits") {
  constexpr std::uint64_t kSeed = 90210;
  RandomStream stream({.seed = kSeed});
  for (int trial = 0; trial < 60; ++trial) {
    CAPTURE(kSeed);
    CAPTURE(trial);
    const Drawn drawn(stream, 2 + stream.below(6));
    const std::size_t floats = dimension_of(drawn.layout);
    const std::size_t most = floats / 3 + 24 * drawn.layout.size() + stream.below(4 * floats);
    const BudgetedCompressor found = compressor_within(most, drawn.samples, drawn.layout);
    CAPTURE(found.spec);
    CHECK(found.bytes <= most);
    CHECK(found.bytes == bytes_of(found.spec, drawn.layout));
    CHECK(relative_error(found.spec, drawn) == doctest::Approx(found.relative_error).epsilon(0.15));
    for (const std::string& one : budget_encodings()) {
      // One compressor for each tensor by itself, as the choice takes it.
      const std::string uniform = one + "; t0=" + one;
      if (bytes_of(uniform, drawn.layout) <= most) {
        CHECK(found.relative_error <= relative_error(uniform, drawn) * 1.1);
      }
    }
  }
}

TEST_CASE("a tensor of large values gets more bits than one of small values") {
  ParameterLayout layout;
  append_block(layout, "small", {4096});
  append_block(layout, "large", {4096});
  RandomStream stream({.seed = 4});
  std::vector<std::vector<float>> samples(1, std::vector<float>(8192));
  for (std::size_t k = 0; k < samples[0].size(); ++k) {
    samples[0][k] = (k < 4096 ? 0.001F : 1.0F) * static_cast<float>(stream.normal());
  }
  const BudgetedCompressor found = compressor_within(5000, samples, layout);
  CHECK(is_per_tensor(found.spec));
  const auto rule = found.spec.find("large=");
  const auto chosen = rule == std::string::npos ? found.spec.substr(0, found.spec.find(';'))
                                                : found.spec.substr(rule + 6);
  CHECK((chosen == "quant:8" || chosen == "quant:6"));
}

TEST_CASE("enough bytes cost nothing, too few are refused with what it takes") {
  RandomStream stream({.seed = 5});
  const Drawn drawn(stream, 3);
  const std::size_t exact = bytes_of("none; t0=none", drawn.layout);
  const BudgetedCompressor found = compressor_within(exact, drawn.samples, drawn.layout);
  CHECK(found.spec == "none");
  CHECK(found.relative_error == 0);
  try {
    (void)compressor_within(10, drawn.samples, drawn.layout);
    FAIL("10 bytes do not hold three tensors");
  } catch (const Error& error) {
    CHECK(error.field() == "compressor");
    CHECK(error.value() == "auto:10");
    CHECK(std::string(error.what()).find("3 tensors take ") != std::string::npos);
  }
}

TEST_CASE("one tensor has no rules, and names that no rule can name are refused") {
  ParameterLayout layout = one_tensor(1000);
  std::vector<std::vector<float>> samples(1, std::vector<float>(1000, 1));
  samples[0][7] = -3;
  CHECK_FALSE(is_per_tensor(compressor_within(900, samples, layout).spec));
  // All zero: nothing is lost, whatever is chosen.
  samples[0].assign(1000, 0);
  CHECK(compressor_within(900, samples, layout).relative_error == 0);
  for (const std::string name : {"a;b", "a=b", "a*", "a b", ""}) {
    ParameterLayout two;
    append_block(two, "first", {500});
    append_block(two, name, {500});
    CAPTURE(name);
    CHECK_THROWS_AS((void)compressor_within(900, samples, two), Error);
  }
}

}  // namespace sotto::test::compressor_budget_test
